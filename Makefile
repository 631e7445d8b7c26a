# The two commands of the tour are `make demo` and `make demo-down`; `make` alone lists them all.
SCENARIO ?= default
ENGINE ?= mm1
demo := inventories/demo$(if $(filter connect,$(ENGINE)),-connect)

root := $(CURDIR)
export PATH := $(root)/.venv/bin:$(PATH)
export CONTAINERS_CONF := $(root)/lab/containers.conf

.DEFAULT_GOAL := help
.PHONY: help bootstrap demo demo-down test test-all molecule lint unit pins docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

bootstrap: ## install and build what demo and tests need (cached; some minutes the first time)
	@lab/bootstrap

demo: bootstrap ## hosts, two brokers, one mirror, a busy producer, the report's verdict; ENGINE=mm2, ENGINE=connect
	.venv/bin/ansible-playbook -i $(demo) -e demo_engine=$(ENGINE) playbooks/demo.yml

demo-down: bootstrap ## remove what demo created
	.venv/bin/ansible-playbook -i inventories/demo lab/destroy.yml
	.venv/bin/ansible-playbook -i inventories/demo-connect lab/destroy.yml

# A bare machine has no Python: the bootstrap brings it, and the gate calls the bootstrap again.
gate = @command -v /usr/bin/python3 >/dev/null || lab/bootstrap; exec tests/gate

test: ## the gate: lint, types, unit tests, scenarios
	$(gate)

test-all: ## the gate with everything that takes long; SHARD=1/2 and then 2/2 run a part each
	$(gate) --all$(if $(SHARD), --shard $(SHARD))

molecule: bootstrap ## one scenario: make molecule SCENARIO=default
	.venv/bin/molecule test --scenario-name $(SCENARIO)

lint: ## linters and types alone
	$(gate) --only lint

unit: ## unit tests alone
	$(gate) --only unit

locks := roles/kafka_client/files/python
lock = .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate $(PINS)
pins: bootstrap ## write the locks of Python packages; PINS=--upgrade takes their newest releases
	$(lock) spark/pyproject.toml --output-file $(locks)/client.txt
	$(lock) spark/pyproject.toml --extra spark --constraint $(locks)/client.txt --output-file $(locks)/spark.txt
	printf 'setuptools\nwheel\n' | $(lock) - --output-file $(locks)/build.txt
	$(lock) requirements.in --constraint $(locks)/spark.txt --output-file requirements.txt

docs: bootstrap ## write the generated pages of docs/
	.venv/bin/python docs/generate.py

clean: ## remove build results (downloads stay in the cache)
	rm -rf build spark/build .mypy_cache .ruff_cache .pytest_cache .hypothesis .ansible
	find . -path ./.venv -prune -o -type d \( -name __pycache__ -o -name '*.egg-info' \) \
	  -exec rm -rf {} +
