# The short ways; CMakePresets.json has the long ones.
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
JOBS ?= $(shell nproc)
ASAN_OPTIONS ?= detect_leaks=0:allocator_may_return_null=1

.PHONY: build demo test test-threads test-mpi4py install header packages format tidy clean

build: packages
	@cmake --preset release -B $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@ninja -C $(BUILD) -j $(JOBS)

packages:
	@tools/install-packages build

demo:
	@tools/install-packages build demo
	@$(MAKE) --no-print-directory build
	@examples/render-farm/demo $(BUILD)

# The sanitizer build first: its summary comes before the closing one.
test:
	@tools/install-packages build test
	@$(MAKE) --no-print-directory build
	@cmake --preset asan -B $(BUILD)-asan >/dev/null
	@ninja -C $(BUILD)-asan -j $(JOBS)
	@ASAN_OPTIONS=$(ASAN_OPTIONS) ctest --test-dir $(BUILD)-asan -LE 'bench|example|wrappers' --output-on-failure -j $(JOBS)
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

# What has threads, under ThreadSanitizer: a data race fails its test.
THREADED = unit_(lock|ring|doorbell|inbox|message|boot_pmi_manager|launch_tree_strangers)|mpi.threads|wait=thread
test-threads:
	@tools/install-packages build test
	@cmake --preset tsan -B $(BUILD)-tsan >/dev/null
	@ninja -C $(BUILD)-tsan -j $(JOBS) tests/all mpiexec starlingd
	@ctest --test-dir $(BUILD)-tsan -R '$(THREADED)' --output-on-failure -j $(JOBS)

test-mpi4py: build
	@tests/mpi4py/run $(BUILD)

install: build
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

# mpi.h alone, before anything is configured.
header:
	@tools/abi/generate.py header $(BUILD)/include/mpi.h

SOURCES = $(shell git ls-files '*.c' '*.h' '*.cpp')

format:
	@tools/install-packages develop
	@clang-format -i $(SOURCES)

tidy: build
	@tools/install-packages develop
	@git ls-files 'src/*.cpp' 'tools/*.cpp' | xargs -P $(JOBS) -n 4 clang-tidy -p $(BUILD) --quiet

clean:
	@rm -rf build build-asan build-ubsan build-tsan build-debug
