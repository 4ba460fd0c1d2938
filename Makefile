# Two commands need nothing but Python 3.11+ and make: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test test-slow fuzz soak lint types format bench clean

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=…")'
	@echo "Making a virtual environment in $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.made pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/.run

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.test $(VENV)/.run

# List the histories of this machine (or the bundled sample), and replay one over stdio.
run: $(VENV)/.run
	@$(BIN)/python -m acp_history_bridge try

# The default suite.
test: $(VENV)/.test
	$(BIN)/python -m pytest

# The groups that take longer: many processes, big trees, failing disks, a built wheel. CI runs them, too. They race with
# the machine's other work, so what fails is run once more, alone; only what fails twice has failed.
test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m process_slow --timeout 200 || $(BIN)/python -m pytest -m process_slow --timeout 200 --last-failed -n 0

# Mutated records and requests with a new seed; `make fuzz FUZZ="--records 1000000 --frames 100000"` for a long run.
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz.run $(FUZZ)

# Ten minutes of changes, loads, searches and kills; `make soak SOAK="--seconds 60"` for less.
soak: $(VENV)/.test
	$(BIN)/python -m tests.faults.soak $(SOAK)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy
	$(BIN)/pyright

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What every path costs, on a made-up home; `make bench ARGS=--full` for 5,000 sessions and 1.5 GB.
bench: $(VENV)/.run
	@$(BIN)/python -m bench.run $(ARGS)

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
