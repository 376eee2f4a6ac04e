"""What the browser tests do to a notebook: open it, run it, find a widget, use it."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page

RUN_ALL_MS = 300_000
WAIT_MS = 30_000


def run_notebook(browser: Browser, lab_url: str, name: str) -> Page:
    """A new page with the notebook, every cell run. Fails when a cell raised."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(WAIT_MS)
    page.goto(f"{lab_url}/lab/tree/notebooks/{name}?reset")
    page.wait_for_function("window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')")
    # Running cells before the session is ready brings up a dialog that asks for a kernel.
    page.evaluate("async () => { await window.jupyterapp.shell.currentWidget.sessionContext.ready; }")
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(
        """() => {
            const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(p => p.textContent);
            const raised = document.querySelector('[data-mime-type="application/vnd.jupyter.error"]');
            return raised || (prompts.length > 0 && prompts.every(p => /\\[\\d+\\]/.test(p)));
        }""",
        timeout=RUN_ALL_MS,
    )
    assert errors(page) == []
    page.wait_for_selector("img.widget-image")
    return page


def errors(page: Page) -> list[str]:
    """Texts of error outputs on the page."""
    return page.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]').all_inner_texts()


def slider(page: Page, label: str) -> Locator:
    """The slider whose label begins with ``label``."""
    return page.locator(".widget-hslider", has=page.locator(".widget-label", has_text=label)).first


def press(widget: Locator, key: str, times: int = 1) -> None:
    """Moves a slider from the keyboard."""
    handle = widget.locator(".noUi-handle")
    handle.scroll_into_view_if_needed()
    handle.focus()
    for _ in range(times):
        handle.press(key)


def readout(widget: Locator) -> str:
    return widget.locator(".widget-readout").inner_text()


def choose(page: Page, label: str, option: str) -> None:
    """Picks an option of a labelled menu."""
    menu = page.locator(".widget-dropdown", has=page.locator(".widget-label", has_text=label)).first
    menu.locator("select").select_option(label=option)


def picture(page: Page) -> str:
    """Address of the last widget image on the page; a new picture has a new one."""
    return page.locator("img.widget-image").last.get_attribute("src")


def wait_for_new_picture(page: Page, old: str) -> None:
    page.wait_for_function("old => [...document.querySelectorAll('img.widget-image')].at(-1).src !== old", arg=old)


def screenshot(page: Page, name: str) -> None:
    """Keeps a picture of the page when SPECNB_SCREENSHOTS names a folder."""
    folder = os.environ.get("SPECNB_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=False)
