# SPDX-License-Identifier: Apache-2.0
# Thin aliases: each is one visible line. `meson compile -C build` and `meson test -C build` work without it.
BUILD ?= build
SEEDS ?= 300
SECONDS_EACH ?= 60

.PHONY: help setup build test check soak sim fuzz asan tsan bench demo fmt lint

help:   ## this list
	@sed -n 's/^\([a-z]*\): .*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

setup:  ## install missing Debian packages (asks for root only if some are)
	tools/setup

$(BUILD)/build.ninja:
	meson setup $(BUILD)

build: setup $(BUILD)/build.ninja  ## compile everything
	meson compile -C $(BUILD)

test:   ## all tests, as CI runs them
	tools/test

check: $(BUILD)/build.ninja  ## after an edit: unit tests (tidy.py is one), directed simulation; builds only these
	meson test -C $(BUILD) --print-errorlogs --suite unit --suite check

soak:   ## hours: 50000 seeds, planted bugs and mutants, a thousand deaths, starvation
	.ci/nightly sim bugs mutants kill starved

sim: build  ## the simulator: make sim SEEDS=5000
	$(BUILD)/tests/sim/ub_sim --seeds $(SEEDS) --jobs 2

fuzz:   ## every fuzz target: make fuzz SECONDS_EACH=600
	UB_FUZZ_SECONDS=$(SECONDS_EACH) .ci/nightly fuzz

asan:   ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	.ci/nightly asan

tsan:   ## the ring tests under ThreadSanitizer
	.ci/nightly tsan

bench: build  ## the benchmark suite: figures beside baselines, less than 15 minutes
	tools/bench --build $(BUILD)

demo:   ## two NICs, a real file across, latency and bandwidth beside kernel UDP and TCP
	tools/demo

fmt:    ## clang-format on all C++ and C sources
	find lib dataplane tools apps tests \( -name '*.h' -o -name '*.cc' -o -name '*.c' \) -exec clang-format -i {} +

lint: $(BUILD)/build.ninja  ## tidy.py, clang-tidy, shellcheck
	python3 tools/tidy.py
	shellcheck tools/setup tools/test tools/demo .ci/run .ci/nightly
	find lib dataplane tools -name '*.cc' -exec clang-tidy --quiet -p $(BUILD) {} +
