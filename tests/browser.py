"""A browser without a window, for the tests that look at pages as a browser does."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """Chromium with a new empty profile; skips where it, its driver or selenium is missing."""
    selenium = pytest.importorskip(
        "selenium.webdriver", reason="needs selenium: pip install -e .[browser]"
    )
    from selenium.webdriver.chrome.service import Service

    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("needs chromium and chromedriver (on Debian: chromium, chromium-driver)")
    options = selenium.ChromeOptions()
    options.binary_location = browser
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = selenium.Chrome(options, Service(driver))
    try:
        yield found
    finally:
        found.quit()
        found.command_executor.close()  # quit leaves its connections to the driver open


@contextmanager
def screen(window: Any, width: int, scheme: str) -> Iterator[None]:
    """As on a screen of that width (under 500: a phone's), light or dark."""
    window.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    window.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    try:
        yield
    finally:
        window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
