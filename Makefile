# Everything a contributor runs. `make test` is what CI runs; it needs Go and Debian's packages only.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.1
FUZZTIME ?= 10s

.PHONY: all build docs test check oracle servers bench fuzz kills clean

all: build

build: ## one static binary: bin/hookonce
	CGO_ENABLED=0 go build -trimpath -o bin/hookonce ./cmd/hookonce

docs: ## write docs/providers.md from the catalogue
	go run ./internal/providerdoc

test: servers check build ## everything CI checks
	go test -race -timeout 12m ./...
	@$(MAKE) oracle

check: ## formatting, module file, vet, staticcheck
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt -w these files:"; echo "$$files"; exit 1; fi
	go mod verify
	go vet ./...
	go run $(STATICCHECK) ./...

oracle: ## compare the catalogue with the libraries that the senders publish
	cd internal/oracle && go vet -mod=mod . && go test -mod=mod -count=1 .

servers: ## install the servers that tests start (PostgreSQL, PgBouncer), if they are missing
	@./scripts/install-servers

bench: servers ## the table of docs/performance.md, about four minutes
	go run ./internal/bench

kills: servers ## kill -9 the gateway under load, twenty times on each store
	go test -count=1 -timeout 20m -run 'TestKillUnderLoad' ./cmd/hookonce -kills 20

fuzz: ## every fuzz target for FUZZTIME each
	@./scripts/fuzz $(FUZZTIME)

clean:
	rm -rf bin
