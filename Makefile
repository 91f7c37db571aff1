# `make` or `make help` lists what there is. Everything runs in .venv, made from requirements.lock when that changes.
.DEFAULT_GOAL := help
.PHONY: help demo test test-trainers slow check format lint types drift lowest golden derive bench lock audit sbom fuzz clean

# The tests start some hundreds of processes; each would compile anew all that it imports.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
ENV := .venv/.made

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(ENV): requirements.lock pyproject.toml .ci/venv
	@PYTHON="$(PYTHON)" sh .ci/venv

demo: $(ENV)  ## Read the sample logs into ./lake, and ask it three questions
	@$(BIN)/etl demo
	@echo && echo "The command etl lies in .venv/bin; put it on your path with: . .venv/bin/activate"

test: $(ENV)  ## Every quick test, and a part of each long one
	@$(BIN)/python -m pytest -n auto --dist worksteal

slow: $(ENV)  ## The tests marked slow alone: real servers, browsers, clusters, large inputs
	@$(BIN)/python -m pytest -n auto --dist worksteal --thorough -m slow

test-trainers:  ## Real trainers on real exports, in an environment of their own (2.4 GB, minutes)
	@PYTHON="$(PYTHON)" sh .ci/trainers
	@.venv-trainers/bin/python -m pytest tests/trainers

check: format lint types drift  ## What CI runs: format, lint, types, drift of what is derived, every test
	@$(BIN)/python -m pytest -n auto --dist worksteal --thorough

format: $(ENV)
	@$(BIN)/ruff format --check --quiet || { echo "not formatted: run $(BIN)/ruff format" >&2; exit 1; }

lint: $(ENV)
	@$(BIN)/ruff check --quiet --output-format concise

types: $(ENV)
	@$(BIN)/mypy

drift: $(ENV)
	@$(BIN)/python -m etl.derive --check

derive: $(ENV)  ## Write anew what follows from the code: schemas/ and the tables of README.md
	@$(BIN)/python -m etl.derive
	@$(BIN)/python -m tests.docs.generated

lowest:  ## Every quick test on the oldest dependencies that pyproject.toml allows (needs uv)
	uv venv --quiet --clear --no-project --python 3.11 .venv-lowest
	uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --group dev --editable .
	.venv-lowest/bin/python -m pytest -n auto --dist worksteal

golden: $(ENV)  ## Write the golden rows anew, of one adapter with NAME=…: read the diff before committing it
	@$(BIN)/python -m tests.golden $(NAME)

bench: $(ENV)  ## Speed and memory against the floor, DuckDB and other tools: make bench [ARGS="--only Peers"] (minutes)
	@$(BIN)/python -m tests.bench.bench $(ARGS)

fuzz: $(ENV)  ## Fuzz adapters and readers, hours in all: make fuzz [TARGET="otlp zip"] [MINUTES=5]
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet 'atheris>=3,<4' 2>/dev/null \
		|| uv pip install --quiet --python $(BIN)/python 'atheris>=3,<4' 2>/dev/null \
		|| echo "atheris does not install here: the same mutations, without looking at what they reach" >&2
	@$(BIN)/python -m tests.fuzz $(TARGET) $(if $(MINUTES),--minutes $(MINUTES))

lock:  ## Resolve the dependencies anew (needs uv)
	uv pip compile pyproject.toml --quiet --group dev --universal --generate-hashes --python-version 3.11 \
		--no-emit-index-url --upgrade --custom-compile-command "make lock" --output-file requirements.lock

audit:  ## Look the locked packages up among known weaknesses; fails where one cannot be looked up (needs uv and the network)
	uvx pip-audit --strict --require-hashes --disable-pip --requirement requirements.lock

sbom:  ## What a release consists of: dist/sbom.cdx.json, CycloneDX, from the locked packages (needs uv)
	@mkdir -p dist
	uvx --from 'cyclonedx-bom>=7,<8' cyclonedx-py requirements requirements.lock --output-reproducible \
		--output-format JSON --output-file dist/sbom.cdx.json

clean:  ## Remove what make made
	rm -rf .fuzz .venv .venv-lowest .venv-trainers .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
