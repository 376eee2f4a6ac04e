"""Tries in a child process what may end a process: llama.cpp itself, and model files from strangers.

llama.cpp ends its process when something it relies on does not hold: an instruction the processor
lacks, a damaged file that passes its checks, no memory left. In a notebook that takes the kernel
and everything in it. So whatever can do that is done in a child first, under a limit of time and
of memory, and the child's death is told in words. The parent never imports llama.cpp for it.
"""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PACKAGE_ROOT = Path(__file__).resolve().parent.parent
"""The folder that ``import specnb`` finds the package in; it may be a checkout that nobody installed."""

TRIAL_S, GPU_TRIAL_S = 10.0, 60.0
"""What a trial may take; the drivers of a graphics card may have to compile their kernels first."""

TEMPLATE_S = 3.0
"""What a chat template may take: it is a program that came with the file, and may never end."""

SECONDS_PER_GIB = 10.0
"""What a trial may take on top for each GiB of the file: a hard disk reads about 0.1 GiB a second."""

START_S = 60.0
"""What importing llama.cpp may take, from a slow disk, on a busy machine."""

LEAST_MEMORY, TIMES_THE_FILE = 2 * 2**30, 3
"""Bytes a trial may use: caches and the buffers of one pass, and the weights, mapped, repacked and on their way."""

WATCH_S = 0.05

REINSTALL = (
    "CMAKE_ARGS=-DGGML_NATIVE=OFF pip install --force-reinstall --no-cache-dir --no-binary llama-cpp-python "
    "llama-cpp-python"
)

_FETCH_AGAIN = (
    "Fetch the file again, it may be damaged; if that changes nothing, use another model or another version of "
    "llama-cpp-python."
)

# Names, because not every system has every signal: (what it means, what to do).
_DEATHS = {
    "SIGILL": ("llama.cpp was built for instructions that this processor or virtual machine lacks", REINSTALL),
    "SIGSEGV": ("llama.cpp read memory that is not its own", _FETCH_AGAIN),
    "SIGABRT": ("llama.cpp gave up on one of its own checks", _FETCH_AGAIN),
    "SIGFPE": ("llama.cpp divided by zero", _FETCH_AGAIN),
    "SIGBUS": ("a part of the file could not be read", "Fetch the file again, or copy it to another disk."),
    "SIGKILL": (
        "the system ended it, most likely because memory ran out",
        "Close other programs, or use a smaller model or weight format.",
    ),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """How a child process fared with something that may kill it. detail: what it found, or what it died of."""

    ok: bool
    detail: str
    fix: str = ""
    features: tuple[str, ...] = ()


def try_model(path: str | Path, timeout_s: float | None = None) -> Trial:
    """Loads a model in a child process, reads its vocabulary, decodes 1 and 8 tokens and takes some back.

    A file whose header contradicts its size is refused without a child. timeout_s: seconds allowed
    (TRIAL_S or GPU_TRIAL_S), and SECONDS_PER_GIB more for each GiB of the file.
    """
    refused = _refused_unopened(path)
    return Trial(False, refused, _LEAVE_OUT) if refused else _in_child("model", (Path(path).absolute(),), timeout_s)


def try_pair(target: str | Path, draft: str | Path, timeout_s: float | None = None) -> Trial:
    """Whether the draft's vocabulary fits the target's, asked in a child process that loads nothing else."""
    return _in_child("pair", (Path(target).absolute(), Path(draft).absolute()), timeout_s)


def try_build() -> Trial:
    """Imports the package with llama.cpp in a child process; ``features`` says what llama.cpp was built for."""
    return _in_child("build", (), None)


def require(path: str | Path) -> None:
    """Raises ``backend.ModelError`` with what happened and what to do when a child cannot use the model.

    A file that passed is not tried again while it stays as it is.
    """
    path = Path(path)
    if (seen := _as_it_is(path)) in _passed:
        return
    refused = _refused_unopened(path)
    trial = Trial(False, refused, _LEAVE_OUT) if refused else try_model(path)
    if not trial.ok:
        from .backend import ModelError

        tried = "" if refused else f"{path.name} was tried in a process of its own: "
        raise ModelError(f"{tried}{trial.detail} {trial.fix}".rstrip())
    _passed.add(seen)


def _refused_unopened(path: str | Path) -> str:
    """Why a file need not even be tried, or nothing."""
    from . import gguf_header  # imports the gguf package, which need not be installed where the doctor is asked why

    try:
        gguf_header.read(path)
    except gguf_header.BadFile as refused:
        return str(refused)
    return ""


_passed: set[tuple[str, int, int, int] | None] = set()


def _as_it_is(path: Path) -> tuple[str, int, int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return str(path.absolute()), status.st_ino, status.st_size, status.st_mtime_ns


# -- the parent --------------------------------------------------------------------------------

_LEAVE_OUT = "Leave the file out to use the embedded model, or name another one."
IMPORTING = "importing llama.cpp"

_kept_child: Child | None = None
_keeping = False


@contextmanager
def one_child_for_many() -> Iterator[None]:
    """Inside, the trials of this process share one child, started again after each death: starting takes a second."""
    global _keeping, _kept_child
    _keeping = True
    try:
        yield
    finally:
        _keeping = False
        if _kept_child is not None:
            _kept_child.end()
        _kept_child = None


def _in_child(task: str, paths: Sequence[Path], timeout_s: float | None) -> Trial:
    """Does a task of ``_Tasks`` in a process of its own and puts its end into words. Never raises for how it ends."""
    global _kept_child
    size = sum(path.stat().st_size for path in paths if path.is_file())
    memory = LEAST_MEMORY + TIMES_THE_FILE * size
    child = _kept_child if _kept_child is not None and _kept_child.alive else Child(_command())
    try:
        trial = child.ask(task, paths, timeout_s, SECONDS_PER_GIB * size / 2**30, memory)
    except BaseException:
        child.end()
        raise
    if _keeping and child.alive:
        _kept_child = child
    else:
        child.end()
    return trial


def _command() -> list[str]:
    return [sys.executable, "-m", "specnb.trial"]


class _Limit:
    """When a child has to be done, and how many bytes it may have resident (None: not watched yet)."""

    def __init__(self, seconds: float, most_bytes: int | None = None) -> None:
        self.seconds, self.until, self.bytes = seconds, time.monotonic() + seconds, most_bytes


class Child:
    """A child process that does one task after the other, until it dies of one.

    command: of the program. It says what ``_child`` says, and is ready once it has named another
    step than importing.
    """

    def __init__(self, command: Sequence[str]) -> None:
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(PACKAGE_ROOT), os.environ.get("PYTHONPATH")))),
            "GGML_NO_BACKTRACE": "1",  # an abort would otherwise start a debugger, and wait for it
        }
        self._errors = tempfile.TemporaryFile()
        # In the package's own folder: with -m, a file in the reader's folder could be imported in a module's place.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=PACKAGE_ROOT,
            env=environment,
        )
        self._said: queue.Queue[dict[str, object] | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, name="specnb-trial", daemon=True)
        self._listener.start()
        self._step, self._step_limit = "starting Python", _Limit(math.inf)
        self._started = False
        self._gpu = False

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """Ends the process, gently if it waits for a task, and lets go of all it held."""
        try:
            self._process.stdin.close()
        except OSError:
            pass
        self._kill()
        self._listener.join(5.0)
        self._process.stdout.close()
        self._errors.close()

    def ask(self, task: str, paths: Sequence[Path], timeout_s: float | None, extra_s: float, memory: int) -> Trial:
        """Does one task. extra_s: seconds on top of the limit. memory: bytes it may use on top of what it has."""
        self._errors.seek(0, os.SEEK_END)
        errors_from = self._errors.tell()
        try:
            request = {"task": task, "paths": [str(path) for path in paths], "memory": memory}
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it died already; what it said and how it ended is read below
        limit = None if self._started else _Limit(START_S)
        while True:
            if self._started and (limit is None or limit.bytes is None):
                seconds = timeout_s or (GPU_TRIAL_S if self._gpu else TRIAL_S)
                limit = _Limit(seconds + extra_s, self._resident() + memory)
            try:
                said = self._said.get(timeout=WATCH_S)
            except queue.Empty:
                late = next((each for each in (limit, self._step_limit) if time.monotonic() > each.until), None)
                if late is not None:
                    self._kill()
                    return Trial(False, f"It was not done after {late.seconds:.0f} s, while {self._step}.", _TOO_SLOW)
                if limit.bytes is not None and self._resident() > limit.bytes:
                    self._kill()
                    return Trial(False, f"It took more than {_gib(memory)} of memory while {self._step}.", _FETCH_AGAIN)
                continue
            if said is None:
                return self._end_in_words(errors_from)
            if "found" in said:
                return Trial(True, str(said["found"]), features=tuple(said.get("features", ())))
            if "error" in said:
                return Trial(False, str(said["error"]), _LEAVE_OUT)
            if "step" in said:
                self._step, self._step_limit = str(said["step"]), _Limit(float(said.get("seconds", math.inf)))
            self._gpu = bool(said.get("gpu", self._gpu))
            self._started = self._step != IMPORTING

    def _listen(self) -> None:
        """Puts the child's JSON lines into the queue; what native code may print between them is left out."""
        for line in self._process.stdout:
            try:
                value = json.loads(line.decode("utf-8", "replace"))
            except ValueError:
                continue
            if isinstance(value, dict):
                self._said.put(value)
        self._said.put(None)

    def _resident(self) -> int:
        import psutil

        try:
            return psutil.Process(self._process.pid).memory_info().rss
        except psutil.Error:
            return 0

    def _kill(self) -> None:
        if self.alive:
            self._process.kill()
        self._process.wait()

    def _end_in_words(self, errors_from: int) -> Trial:
        code = self._process.wait()
        self._errors.seek(errors_from)
        complaint = _complaint(self._errors.read())
        if code < 0:
            name = _signal_name(-code)
            cause, fix = _DEATHS.get(name, ("something outside ended it", "Try again."))
            return Trial(False, f"It died with {name} while {self._step}: {cause}.{complaint}", fix)
        fix = REINSTALL if self._step == IMPORTING else _FETCH_AGAIN
        return Trial(False, f"It failed while {self._step} (exit code {code}).{complaint}", fix)


_TOO_SLOW = "Try again when nothing else uses the cores or the disk; if that changes nothing, use a smaller model."


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _complaint(errors: bytes) -> str:
    """The line in which llama.cpp says what did not hold, else the last one; as a sentence, or nothing."""
    lines = [line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    said = next((line for line in lines if "GGML_ASSERT" in line), lines[-1] if lines else "")
    return f" It said: {said}" if said else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# -- the child: says before each step what it is about to do ------------------------------------


def _child() -> None:
    """Reads tasks, one JSON object a line, until there are no more.

    Answers in JSON objects, one a line: {"step": ...} before each step, at last {"found": ...} or
    {"error": ...}; a child that dies leaves the step it died in as its last line.
    """
    say(step=IMPORTING)
    from . import backend, measure, models  # noqa: F401 - imported to see whether it can be

    say(step="waiting for a task", gpu=backend.gpu_offload())
    for request in tasks():
        if not backend.gpu_offload():  # the drivers of graphics cards reserve far more addresses than they use
            _limit_memory(request["memory"])
        try:
            _do(request["task"], request["paths"])
        except (backend.ModelError, backend.SessionError) as error:
            say(error=str(error))
        except MemoryError:
            say(error=f"it asked for more than {_gib(request['memory'])} of memory.")


def tasks() -> Iterator[dict[str, object]]:
    """In a child: what its parent asks for. Ends the process once the parent is gone, also in the midst of a task."""
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            asked.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield json.loads(asked.get())


def _do(task: str, paths: Sequence[str]) -> None:
    from . import backend, models

    if task == "build":
        say(found=backend.build_info(), features=_features(backend.build_info()))
    elif task == "model":
        say(found=_use(paths[0]))
    elif task == "pair":
        say(step="reading both vocabularies")
        with (
            backend.Model(paths[0], vocabulary_only=True) as target,
            backend.Model(paths[1], vocabulary_only=True) as draft,
        ):
            models.check_pair(target, draft)
        say(found="the draft's tokens are the target's")


def _use(path: str) -> str:
    """All that a notebook will do with a model, in small."""
    from .backend import Model, Session

    say(step="loading the weights")
    with Model(path) as model:
        prompt: tuple[int, ...] = (0,)
        if model.has_tokenizer:
            say(step="reading its vocabulary")
            for token in range(model.n_vocab):
                model.piece(token), model.token_text(token), model.is_eog(token)
            say(step="writing a prompt in its chat template", seconds=TEMPLATE_S)
            prompt = model.chat_prompt("How much is 1 + 1?\nÄ, 语, 🙂.")
        say(step="making a context")
        # One thread: two would wait for each other by spinning, up to a minute where something else holds a core.
        with Session(model, threads=1) as session:
            for n in (1, 8):
                say(step=f"decoding {n} token{'s' * (n > 1)}")
                session.extend([0] * n)
                session.logits(-1)
            session.rewind(0)
            session.extend(prompt[: session.n_ctx], rows="last")
            say(step="taking tokens back")
            session.probe_rollback()
        info = model.info
        return (
            f"{info.name} ({info.format}, {info.n_layer} layers, {info.weight_bytes / 2**20:.0f} MiB) "
            "loads, decodes and takes tokens back"
        )


def _limit_memory(more: int) -> None:
    """Lets this process have that many bytes of addresses more than it has now, where the system can be told so."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return  # the parent's watch is all there is
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _features(build_info: str) -> list[str]:
    """``backend.build_info`` ends with the features in parentheses."""
    return build_info[build_info.rfind("(") + 1 :].rstrip(")").split(", ")


def say(**what: object) -> None:
    """In a child: one line of its answer."""
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    _child()
