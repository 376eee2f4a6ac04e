# Set-up and daily commands; `make` alone lists them.
#
# The set-up is a chain of four steps: virtual environment, llama-cpp-python, workbook, test tools.
# Each leaves a stamp file, so a second call does nothing. Only what GNU make 3.81 (macOS) understands.

PYTHON ?= python3
PYTHON_MINIMUM := 3.10
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
STAMPS := $(VENV)/.specnb

# The one place that states the version is pyproject.toml.
LLAMA_PIN := $(shell sed -n 's/^ *"\(llama-cpp-python[^"]*\)",*$$/\1/p' pyproject.toml)

# A native build (the default) uses whatever the processor announces. Some x86-64 virtual machines
# announce AMX without letting programs use it: the first pass then dies with SIGILL at `tileloadd`.
# With GGML_NATIVE=OFF, ggml's CMakeLists.txt takes its fixed x86-64 set instead: SSE4.2, AVX, AVX2,
# FMA, F16C and BMI2 default to ON, AVX-512 and AMX to OFF. (ggml drops that set as well when
# SOURCE_DATE_EPOCH is defined, hence the unexport.) On ARM there is no such trap and native is faster.
# Whoever sets CMAKE_ARGS decides alone; setting it anew rebuilds, leaving it out never does.
REBUILD :=
ifeq ($(origin CMAKE_ARGS),undefined)
  ifeq ($(shell uname -m),x86_64)
    ifneq ($(shell uname -s),Darwin)
      export CMAKE_ARGS := -DGGML_NATIVE=OFF
    endif
  endif
else
  export CMAKE_ARGS
  ifneq ($(strip $(CMAKE_ARGS)),$(strip $(shell cat $(STAMPS)/llama 2>/dev/null)))
    REBUILD := FORCE
  endif
endif
unexport SOURCE_DATE_EPOCH

.PHONY: help lab test notebooks lint FORCE
.DELETE_ON_ERROR:

help:
	@echo "make lab        set up and open the workbook in JupyterLab   (LAB_ARGS='--no-browser' and the like)"
	@echo "make test       set up and run all tests                     (PYTEST_ARGS='-k theory' and the like)"
	@echo "make notebooks  set up and re-execute the notebooks in place"
	@echo "make lint       set up and check the style of the code"
	@echo "Every command sets itself up; the first one compiles llama-cpp-python (5-6 minutes on two cores)."

lab: $(STAMPS)/lab
	@echo "specnb: opening $(VENV)'s JupyterLab; Ctrl-C twice ends it."
	@$(PY) -m jupyterlab $(LAB_ARGS) notebooks/00_start_here.ipynb

test: $(STAMPS)/test
	@echo "specnb: running all tests."
	@$(PY) -m pytest $(PYTEST_ARGS)

notebooks: $(STAMPS)/test
	@echo "specnb: executing the notebooks in place; allow two minutes for each."
	@$(PY) tests/notebooks/execute.py notebooks notebooks/solutions

lint: $(STAMPS)/test
	@echo "specnb: checking the style of specnb and tests."
	@$(PY) -m ruff check specnb tests
	@$(PY) -m ruff format --check specnb tests

# No recipe on purpose: when the interpreter is gone (never made, or its Python was removed), make
# counts this as news and runs the step below, which makes a fresh environment.
$(PY): ;

RECENT := import sys; sys.exit(sys.version_info < tuple(map(int, sys.argv[1].split("."))))

$(STAMPS)/venv: $(PY)
	@if $(PY) -c 'import pip; $(RECENT)' $(PYTHON_MINIMUM) >/dev/null 2>&1; then \
	  echo "specnb: using the virtual environment already in $(VENV)."; \
	else \
	  command -v $(PYTHON) >/dev/null 2>&1 || { \
	    echo "specnb: there is no '$(PYTHON)' here. Install Python $(PYTHON_MINIMUM) or newer," \
	      "or name the one to use: make lab PYTHON=python3.12"; exit 1; } >&2; \
	  $(PYTHON) -c '$(RECENT)' $(PYTHON_MINIMUM) || { \
	    echo "specnb: '$(PYTHON)' is $$($(PYTHON) --version 2>&1), but Python $(PYTHON_MINIMUM) or newer is needed." \
	      "Name a newer one: make lab PYTHON=python3.12"; exit 1; } >&2; \
	  $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo "specnb: '$(PYTHON)' cannot make virtual environments (no venv or no ensurepip)." \
	      "On Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; } >&2; \
	  echo "specnb: making a virtual environment in $(VENV) with $$($(PYTHON) --version 2>&1)."; \
	  $(PYTHON) -m venv --clear $(VENV) || exit 1; \
	fi
	@$(PIP) install --quiet "pip>=23"
	@mkdir -p $(STAMPS) && touch $@

# In a step of its own, because only this package is compiled:
#   --no-binary, --no-cache-dir   pip would otherwise take a wheel that some earlier native build left in its cache
#   --no-deps                     the next step installs them, and must be free to choose binary ones
# An edit of pyproject.toml comes by here too; when the installed version still fits, nothing is compiled.
# The stamp holds the CMAKE_ARGS of the build.
$(STAMPS)/llama: $(STAMPS)/venv pyproject.toml $(REBUILD)
	@if [ -z "$(REBUILD)" ] && $(PIP) install --isolated --dry-run --no-index --no-deps \
	    --no-binary llama-cpp-python "$(LLAMA_PIN)" >/dev/null 2>&1; then \
	  echo "specnb: keeping the llama-cpp-python that is installed; it satisfies $(LLAMA_PIN)."; \
	  touch $@; \
	else \
	  command -v "$${CXX:-c++}" >/dev/null 2>&1 || { \
	    echo "specnb: llama-cpp-python is compiled from source, and there is no C++ compiler '$${CXX:-c++}'." \
	      "On Debian and Ubuntu: sudo apt-get install build-essential. On macOS: xcode-select --install"; exit 1; } >&2; \
	  echo "specnb: compiling $(LLAMA_PIN) from source with CMAKE_ARGS='$${CMAKE_ARGS-}'."; \
	  echo "specnb: this takes 5-6 minutes on two cores, less on more, and happens once."; \
	  $(PIP) install --force-reinstall --no-deps --no-cache-dir --no-binary llama-cpp-python "$(LLAMA_PIN)" || exit 1; \
	  printf '%s\n' "$${CMAKE_ARGS-}" >$@; \
	fi

$(STAMPS)/lab: $(STAMPS)/llama pyproject.toml
	@echo "specnb: installing JupyterLab, the embedded model (98 MB) and the rest; a minute or two."
	@$(PIP) install --quiet -e .
	@touch $@

$(STAMPS)/test: $(STAMPS)/lab pyproject.toml
	@echo "specnb: installing the test tools."
	@$(PIP) install --quiet -e ".[test]"
	@touch $@
