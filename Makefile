# The two commands that matter: `make demo` and `make test`.
GO      ?= go
BIN     := bin/agent
VERSION ?= 0.1.0
LDFLAGS := -s -w -X github.com/agentcli/agent/internal/cli/version.Own=$(VERSION)
# One set of flags, so that what one step compiled serves the next; only the race
# detector needs cgo. Without the tag gRPC, which a model's SDK brings, makes the
# linker keep every method there is: 15 MB (docs/adr/0017-binary-size.md).
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath -tags=grpcnotrace
export CGO_ENABLED := 0
FUZZTIME ?= 2s
# Packages with code per operating system; `make check` builds all of it.
OS_SPECIFIC := ./internal/sandbox ./internal/tools ./internal/streamjson ./internal/settings ./internal/transcript
# What is compiled for its types alone need not be fast.
TYPES_ONLY := '-gcflags=all=-N -l'
# The race detector needs a C compiler; without one the tests run without it.
CC_FOUND := $(shell command -v $${CC:-cc} 2>/dev/null)
RACE := $(if $(CC_FOUND),-race,)
race: export CGO_ENABLED := $(if $(CC_FOUND),1,0)

.PHONY: all build demo test race fuzz soak bench check fmt clean

all: build

build:
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/agent

# The main job, without a key: a scripted model drives the real loop and the
# real tools over a copy of a small project whose test fails before and passes
# after.
demo: build
	sh demo/run.sh $(abspath $(BIN))

# The gate. CI runs this and nothing else.
test: fmt
	$(GO) vet ./...
	GOOS=darwin $(GO) vet $(TYPES_ONLY) $(OS_SPECIFIC)
	GOOS=windows $(GO) vet $(TYPES_ONLY) $(OS_SPECIFIC)
	$(MAKE) --no-print-directory race
	@$(GO) test -count=1 -v -run TestCorpusScore ./internal/policy | grep '^policy score'
	$(MAKE) --no-print-directory fuzz
	sh demo/run.sh --check $(abspath $(BIN))

# Tests mostly wait for programs: more of them run than there are processors.
race: build
	sh scripts/setup.sh
	@[ -n "$(RACE)" ] || echo "NOTE: there is no C compiler: the tests run without the race detector"
	@[ -n "$(RACE)" ] || [ "$$CI" != true ] || { echo "CI demands the race detector: install a C compiler"; exit 1; }
	AGENT_BINARY=$(abspath $(BIN)) $(GO) test $(RACE) -shuffle=on -parallel 4 -timeout 10m ./...

# Each fuzz target for FUZZTIME; the seeds run with the tests.
fuzz:
	sh scripts/fuzz.sh $(FUZZTIME)

# Long fuzzing and endurance.
soak: build
	sh scripts/fuzz.sh 60s
	AGENT_BINARY=$(abspath $(BIN)) AGENT_SOAK=1 $(GO) test -count=1 -timeout 60m -run 'Soak|UsersRow(01|07|41)|FaultF0[89]' ./integration
	AGENT_SOAK=1 $(GO) test -count=1 -v -timeout 60m -run Soak ./integration/differential
	AGENT_SOAK=1 $(GO) test -count=1 -run 'Swapped|Canonical' ./internal/tools

# Figures, side by side with floor programs: one table.
bench: build
	$(GO) run ./bench -agent $(abspath $(BIN))
	POLICY_FIGURES=1 $(GO) test -count=1 -run TestDecisionFigures -v ./internal/policy

check:
	GOOS=darwin $(GO) build -o /dev/null ./cmd/agent
	GOOS=windows $(GO) build -o /dev/null ./cmd/agent
	$(GO) run honnef.co/go/tools/cmd/staticcheck@2025.1.1 ./...
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

fmt:
	@out=$$(gofmt -l cmd internal integration bench demo); if [ -n "$$out" ]; then echo "gofmt these:"; echo "$$out"; exit 1; fi

clean:
	rm -rf bin dist
