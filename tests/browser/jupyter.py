"""JupyterLab in headless Chromium, and what the browser tests do to a notebook: open it, run it, use a widget."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, sync_playwright

RUN_ALL_MS = 300_000
WAIT_MS = 30_000

ROOT = Path(__file__).resolve().parents[2]
NO_CHROMIUM = "there is no Chromium on this machine. On Debian and Ubuntu: apt-get install chromium"
CHROMIUM_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip
SETTINGS = {
    # Every cell is in the page, not only those in view, so that a test can wait for any of them.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        yield opened
        opened.close()


@contextmanager
def lab(folder: Path) -> Iterator[str]:
    """Address of a running JupyterLab that shows ``folder``, into which the notebooks are copied."""
    shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    settings = folder / "settings"
    for name, values in SETTINGS.items():
        file = settings / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "SPECNB_GUESSES": str(folder / "guesses.json"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    log = (folder / "server.log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser",
         f"--port={port}", "--ip=127.0.0.1", "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}"],
        env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=folder,
    )  # fmt: skip
    try:
        _wait_for(f"http://127.0.0.1:{port}/api", server, folder / "server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)
        log.close()


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")


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


def type_in(page: Page, index: int, source: str) -> None:
    """Types over what stands in a cell."""
    editor = page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".cm-content")
    editor.scroll_into_view_if_needed()
    editor.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(source)
    typed = page.evaluate(
        "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.sharedModel.getSource()", index
    )
    assert typed == source, f"the editor made {typed!r} of {source!r}"


def run_cell(page: Page, index: int) -> str:
    """Runs one cell to its end; the text of its outputs. The name and text of an exception where it raises."""
    return page.evaluate(
        """async index => {
            const notebook = window.jupyterapp.shell.currentWidget.content;
            notebook.activeCellIndex = index;
            notebook.deselectAll();
            await window.jupyterapp.commands.execute('notebook:run-cell');
            const said = notebook.widgets[index].model.outputs.toJSON().map(output =>
                output.output_type === 'error' ? `${output.ename}: ${output.evalue}`
                    : output.text ?? output.data['text/plain'] ?? '');
            return said.flat().join('');
        }""",
        index,
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


def wait_for_answer(page: Page, code: str, wanted: str) -> None:
    """Until code prints this in the page's kernel: messages of widgets may still be under way when a page is done."""
    deadline = time.monotonic() + WAIT_MS / 1000
    while (answer := ask_kernel(page, code)) != wanted and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    assert answer == wanted, code


def wait_for_its_picture(page: Page, widget: str) -> None:
    """Until a widget shows the picture of where its controls stand."""
    wait_for_answer(page, f"with {widget}._redrawing:\n    print({widget}.picture.value == {widget}.redraw())", "True")


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
    begins = re.compile(rf"^\s*{re.escape(label)}")
    return page.locator(".widget-hslider", has=page.locator(".widget-label", has_text=begins)).first


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
