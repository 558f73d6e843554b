"""What every test stands on: nothing runs in the background unless a test asks for it."""

import os

# Jobs that begin by themselves would make what a test sees depend on when it looks. Tests of maintenance switch it on.
os.environ["KEEPWARD_MAINTENANCE"] = "off"
