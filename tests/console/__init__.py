"""Tests of the console. As a package its fixtures end with its last test: Playwright keeps a running event loop."""
