# The commands of the project. Each target does what is missing, and no more; `make` alone lists them.
PYTHON_IN_VENV := .venv/bin/python
LOWLP := .venv/bin/lowlp
ARGS ?=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup configure build demo test test-lit test-unit test-python test-checkpoints test-vllm test-sglang bench sanitize docs format lint wheel test-wheel clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1|/' | \
	  awk -F'|' '{ printf "  make %-16s %s\n", $$1, $$2 }'

setup: ## install what is missing: Debian packages, .venv, the source of MLIR's Python bindings
	@tools/dev/setup.sh

configure: setup
	@if [ ! -f build/build.ninja ]; then \
	  echo "==> configuring"; cmake --preset dev --log-level=WARNING; fi

build: configure ## build everything into build/
	@echo "==> building"
	@cmake --build build

demo: build ## quantise, compile and run a real weight matrix; on the GPU if there is one (ARGS="--dtype int4", ARGS="--model PATH")
	@tools/dev/setup.sh --demo $(if $(findstring --model,$(ARGS)),--transformers)
	@echo "==> lowlp demo"
	@$(LOWLP) demo $(ARGS)

test: build ## run all tests: lit, GoogleTest, pytest
	@tools/dev/run-tests.sh

test-lit: build ## run the lit tests
	@tools/dev/run-tests.sh lit

test-unit: build ## run the C++ unit tests
	@tools/dev/run-tests.sh unit

test-python: build ## run the Python tests
	@tools/dev/run-tests.sh python gpu

test-checkpoints: build ## test the readers of checkpoints against the tools that write them (ARGS="-k gguf")
	@tools/dev/test-checkpoints.sh $(ARGS)

test-vllm: build ## test the plug-in against vLLM's own classes, on the CPU (ARGS="-k experts")
	@tools/dev/test-engine.sh vllm $(ARGS)

test-sglang: build ## test the plug-in against SGLang's own classes, on the CPU (ARGS="-k head")
	@tools/dev/test-engine.sh sglang $(ARGS)

bench: build ## time the kernels on the GPU, beside other libraries that are installed (ARGS="--quick")
	@echo "==> lowlp bench"
	@$(LOWLP) bench --peers $(ARGS)

sanitize: build ## run small products on the GPU under compute-sanitizer (ARGS="--tools memcheck")
	@echo "==> compute-sanitizer"
	@$(PYTHON_IN_VENV) test/gpu/sanitize.py $(ARGS)

docs: build ## write the documentation as HTML into build/docs
	@tools/dev/build-docs.sh

format: ## format C++ and Python
	@tools/dev/setup.sh --lint
	@tools/dev/lint.sh --fix

lint: build ## check format, types, structure; clang-tidy on what changed
	@tools/dev/setup.sh --lint
	@tools/dev/lint.sh

wheel: setup ## build a wheel that needs no package of Debian into dist/
	@tools/dev/build-wheel.sh

test-wheel: wheel ## install the wheel in an empty environment and test it there
	@$(PYTHON_IN_VENV) -m pytest test/wheel

clean: ## remove what was built, and keep .venv
	rm -rf build dist
