# The short ways; CMakePresets.json has the long ones.
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
JOBS ?= $(shell nproc)
ASAN_OPTIONS ?= detect_leaks=0:allocator_may_return_null=1

.PHONY: build everything configure demo test test-threads test-delays test-mpi4py test-shmem4py test-shmem-random test-petsc test-compat wheel test-wheel deb test-deb test-verbs test-nfs test-long simulate docs install install-strip header packages format tidy clean

# What an installation has. `make everything` adds tests, examples and benchmarks, and installs what tests need.
build: packages configure
	@ninja -C $(BUILD) -j $(JOBS) starling_installed

everything:
	@tools/install-packages build test
	@$(MAKE) --no-print-directory configure
	@ninja -C $(BUILD) -j $(JOBS)

configure:
	@cmake --preset release -B $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

packages:
	@tools/install-packages build

# Only what it runs: the library, the launcher and the render farm.
demo:
	@echo "make demo, 1 of 3: Debian packages that are missing"
	@tools/install-packages build demo
	@echo "make demo, 2 of 3: compiling the library, the launcher and the example (one to two minutes on two cores)"
	@$(MAKE) --no-print-directory configure
	@ninja -C $(BUILD) -j $(JOBS) mpi_abi mpiexec render-farm
	@echo "make demo, 3 of 3: rendering a picture with workers that come and go"
	@examples/render-farm/demo $(BUILD)

# The build with sanitizers is compiled in processor time that the tests of the other one leave: they often wait. Both builds are tested even
# if tests of one fail. The end of the output says what failed, what was skipped, and why.
test:
	@$(MAKE) --no-print-directory everything
	@cmake --preset asan -B $(BUILD)-asan >/dev/null
	@ASAN_OPTIONS=$(ASAN_OPTIONS) tests/suite $(SUITE) --beside "ninja -C $(BUILD)-asan -j $(JOBS)" $(BUILD) $(BUILD)-asan -- -j $(JOBS)

# What has threads, under ThreadSanitizer; then the same jobs and one in so many of the others with a thread of the library's in every
# process. A data race or an order of locks that may deadlock fails it, also in a process whose exit nobody asks about; a process that a test
# kills by a signal does not.
EVERY ?= 5
threaded = $(shell grep -lE $(2) $(wildcard tests/$(1)/*.c tests/$(1)/*.cpp) | sed 's|.*/||; s|\.[a-z]*$$||' | paste -sd '|')
OF_UNITS = 'std::thread|pthread_create|"STARLING_WAIT"|message_t(eam|raffic)\.h|verbs_(fabric|processes)\.h'
OF_JOBS = 'std::thread|pthread_create'
THREADED_JOBS = ^(mpi|shmem)\.($(call threaded,mpi,$(OF_JOBS))|$(call threaded,shmem,$(OF_JOBS)))\.
THREADED = ^unit_($(call threaded,unit,$(OF_UNITS)))|$(THREADED_JOBS)|wait=thread|\.thread$$
RACES = $(abspath $(BUILD))-tsan/races
under_tsan = TSAN_OPTIONS=log_path=$(RACES) ctest --test-dir $(BUILD)-tsan --output-on-failure -j $(JOBS)
test-threads:
	@tools/install-packages build test
	@cmake --preset tsan -B $(BUILD)-tsan >/dev/null
	@ninja -C $(BUILD)-tsan -j $(JOBS) tests/all mpiexec starlingd
	@rm -f $(RACES).*; failed=0; \
	    $(under_tsan) -R '$(THREADED)' || failed=1; \
	    STARLING_WAIT=thread $(under_tsan) -R '$(THREADED_JOBS)' || failed=1; \
	    STARLING_WAIT=thread $(under_tsan) -R '^(mpi|shmem)\.' -I 1,,$(EVERY) || failed=1; \
	    grep -hA 60 'WARNING: ThreadSanitizer' $(RACES).* /dev/null && failed=1; exit $$failed

# Jobs whose processes stop now and then where races may be (src/base/delay.h), once for each of these seeds.
DELAYS ?= 1 2 3
DELAYED = ^(mpi\.|shmem|launch_hosts_Windows|lab\.(Windows|Shmem|programs))
test-delays:
	@tools/install-packages build test
	@cmake --preset delays -B $(BUILD)-delays >/dev/null
	@ninja -C $(BUILD)-delays -j $(JOBS) tests/all mpiexec starlingd starling
	@for seed in $(DELAYS); do echo "TEST_DELAYS=$$seed"; \
	    TEST_DELAYS=$$seed ctest --test-dir $(BUILD)-delays -R '$(DELAYED)' --output-on-failure -j $(JOBS) || exit 1; done

# Whole jobs in a simulated world, one per seed (tests/simulation): as many as there is time for.
SEEDS ?= 1-100000
simulate: configure
	@ninja -C $(BUILD) -j $(JOBS) simulation
	@$(BUILD)/tests/simulate --jobs $(JOBS) --seeds $(SEEDS)

# For pip: bin, lib and include of any environment (tools/wheel).
wheel: build
	@tools/install-packages build package
	@tools/wheel/build $(BUILD) $(BUILD)/wheels

test-wheel: build
	@tools/install-packages build package
	@tests/wheel/run $(BUILD) mpi4py

# Packages for Debian (debian/), and a trial of them on a copy of this machine, as root.
deb: build
	@tools/install-packages build package
	@tools/deb $(BUILD) $(BUILD)/debs

test-deb: build
	@tools/install-packages build test package deb
	@tests/deb/run $(BUILD)

# Programs of Debian's that are linked with Open MPI: the packages that its text names are there already.
test-compat: build
	@tests/compat/run $(BUILD)

test-mpi4py: build
	@tests/mpi4py/run $(BUILD)

test-shmem4py: build
	@tests/shmem4py/run $(BUILD)

test-petsc: build
	@tools/install-packages petsc
	@tests/petsc/run $(BUILD)

# On virtual machines with Soft-RoCE (tests/lab-verbs): needs root, and downloads Debian's kernel (70 MB) the first time.
test-verbs: packages configure
	@tools/install-packages build test verbs
	@ninja -C $(BUILD) -j $(JOBS)
	@ctest --test-dir $(BUILD) -C Verbs -L '^verbs$$' --output-on-failure

# MPI's files on the kernel's own NFS, on virtual machines.
test-nfs: packages configure
	@tools/install-packages build test verbs nfs
	@ninja -C $(BUILD) -j $(JOBS)
	@ctest --test-dir $(BUILD) -C Nfs -L '^nfs$$' --output-on-failure

# Calls that move gigabytes; they need 5 GB of memory.
test-long: build
	@ctest --test-dir $(BUILD) -C Long -L '^long$$' --output-on-failure

# Random OpenSHMEM programs over four lab hosts that lose frames: 5 s each.
PROGRAMS ?= 100
test-shmem-random: build
	@LAB_BIN=$(abspath $(BUILD))/tests/lab STARLING_TEST_SEEDS=$(PROGRAMS) tests/lab/shmem_test Random

install: build
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

# The same without debug information.
install-strip: build
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)" --strip

# The documents as a site with search, in build/site/html.
docs:
	@tools/install-packages docs
	@tools/site/build $(BUILD)/site

# mpi.h alone, before anything is configured.
header:
	@tools/abi/generate.py header $(BUILD)/include/mpi.h

SOURCES = $(shell git ls-files '*.c' '*.h' '*.cpp')

format:
	@tools/install-packages develop
	@clang-format -i $(SOURCES)

# Without the precompiled headers of another compiler.
tidy:
	@tools/install-packages build develop
	@cmake --preset develop -B $(BUILD)-tidy -DSTARLING_PRECOMPILED=OFF -DSTARLING_TESTS=OFF >/dev/null
	@ninja -C $(BUILD)-tidy mpi_header mpi_entries
	@git ls-files 'src/*.cpp' 'tools/*.cpp' | xargs -P $(JOBS) -n 4 clang-tidy -p $(BUILD)-tidy --quiet

clean:
	@rm -rf build build-develop build-asan build-ubsan build-tsan build-delays build-debug build-tidy
