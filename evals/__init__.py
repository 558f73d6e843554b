"""Programs that let anyone measure: each reads JSON lines on standard input and writes JSON lines."""

import os

# Jobs in the background change a store while it is asked: two runs would differ by when the jobs ran.
os.environ["KEEPWARD_MAINTENANCE"] = "off"
