"""Speed, measured side by side in one run and printed as ratios."""

import os

# Jobs in the background take time from what is measured.
os.environ["KEEPWARD_MAINTENANCE"] = "off"
