"""What the browser tests do to a notebook: open it, run it, find a widget, use it."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page

RUN_ALL_MS = 300_000
WAIT_MS = 30_000


def run_notebook(browser: Browser, lab_url: str, name: str) -> Page:
    """A new page with the notebook, every cell run. Fails when a cell raised."""
    page = open_notebook(browser, lab_url, name)
    run_all(page)
    wait_for_the_end(page)
    assert errors(page) == []
    page.wait_for_selector("img.widget-image")
    return page


def open_notebook(browser: Browser, lab_url: str, name: str) -> Page:
    """A new page with the notebook and its kernel, nothing run yet."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(WAIT_MS)
    page.goto(f"{lab_url}/lab/tree/notebooks/{name}?reset")
    page.wait_for_function(
        "window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')", timeout=RUN_ALL_MS
    )  # the page's first load takes long where the cores are busy
    # Running cells before the session is ready brings up a dialog that asks for a kernel.
    page.evaluate("async () => { await window.jupyterapp.shell.currentWidget.sessionContext.ready; }")
    return page


def run_all(page: Page) -> None:
    """Starts every cell and does not wait."""
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")


def wait_for_the_end(page: Page) -> None:
    """Until every cell has run, or one has raised."""
    page.wait_for_function(
        """() => {
            const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(p => p.textContent);
            const raised = document.querySelector('[data-mime-type="application/vnd.jupyter.error"]');
            return raised || (prompts.length > 0 && prompts.every(p => /\\[\\d+\\]/.test(p)));
        }""",
        timeout=RUN_ALL_MS,
    )


def ask_kernel(page: Page, code: str) -> str:
    """What code prints in the page's kernel; the name and text of its exception where it raises."""
    return page.evaluate(
        """async code => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            let text = '';
            const future = kernel.requestExecute({code});
            future.onIOPub = m => { if (m.header.msg_type === 'stream') text += m.content.text; };
            const reply = await future.done;
            return reply.content.status === 'ok' ? text.trim() : `${reply.content.ename}: ${reply.content.evalue}`;
        }""",
        code,
    )


def restart(page: Page) -> None:
    """Restarts the kernel and clears the outputs."""
    page.evaluate(
        """async () => {
            await window.jupyterapp.shell.currentWidget.sessionContext.restartKernel();
            await window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs');
        }"""
    )


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


def picture(page: Page, index: int = -1) -> str:
    """Address of a widget image on the page, the last unless told; a new picture has a new one."""
    return page.locator("img.widget-image").nth(index).get_attribute("src")


def wait_for_new_picture(page: Page, old: str, index: int = -1) -> None:
    page.wait_for_function(
        "([old, index]) => [...document.querySelectorAll('img.widget-image')].at(index).src !== old", arg=[old, index]
    )


def screenshot(page: Page, name: str) -> None:
    """Keeps a picture of the page when SPECNB_SCREENSHOTS names a folder."""
    folder = os.environ.get("SPECNB_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=False)
