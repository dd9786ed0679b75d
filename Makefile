# Everything a contributor runs. CI runs `make ci`; it needs Go and Debian's packages only, and fetches the modules and the
# npm package that it compares with.

TRIM = -trimpath
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.1
FUZZTIME ?= 10s
# What a package's tests are given. It ends what hangs, and says where, within the time of a CI run; it judges no speed.
HANGS = -timeout 40m

.PHONY: all build image npm deploy release reproducible docs test race ci check oracle browser screenshots examples adapters dynamodb servers bench bench-stores bench-large backlog fuzz kills chaos histories attack ops clean

all: build

build: ## one static binary: bin/hookonce
	CGO_ENABLED=0 go build $(TRIM) -o bin/hookonce ./cmd/hookonce

ARCH ?= $(shell go env GOARCH)

image: ## the container image for ARCH in dist, without a daemon
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) go build -trimpath -ldflags='-s -w -buildid=' -o dist/image/$(ARCH)/hookonce ./cmd/hookonce
	cd internal/tool/image && go run -mod=mod . -program $(CURDIR)/dist/image/$(ARCH)/hookonce -license $(CURDIR)/LICENSE -o $(CURDIR)/dist/hookonce_linux_$(ARCH).image.tar

deploy: ## try the container image, the npm package, the Compose file and the chart, as far as that goes without a daemon and a cluster
	@./scripts/install-servers bwrap promtool
	cd internal/tool/image && go vet -mod=mod . && go test -mod=mod -vet=off -count=1 $(HANGS) .
	cd internal/tool/deploy && go vet -mod=mod . && go test -mod=mod -vet=off -count=1 $(HANGS) .

release: ## programs, archives, deb, rpm, bills of materials and checksums in dist/release; MINISIGN_KEY signs
	rm -rf dist/release
	./scripts/release dist/release

reproducible: ## build twice what is released, in two folders, and compare every byte; half an hour
	./scripts/reproducible

npm: ## npm packages, in dist/npm, of the programs that make release built
	./scripts/npm dist/npm "$$(dist/release/bin/$$(go env GOHOSTOS)_$$(go env GOHOSTARCH)/hookonce version | sed -n 's/^hookonce v//p')" dist/release/bin

OLD ?= HEAD~1

.PHONY: packages
packages: ## install, upgrade from OLD under load, remove and purge the deb under systemd; the rpm; arm64 under qemu
	@./scripts/install-servers packages
	rm -rf dist/packages/old dist/packages/new && mkdir -p dist/packages
	minisign -G -f -W -p dist/packages/key.pub -s dist/packages/key >/dev/null
	PLATFORMS=linux/amd64 ./scripts/release dist/packages/old $(OLD)
	PLATFORMS="linux/amd64 linux/arm64" MINISIGN_KEY=dist/packages/key ./scripts/release dist/packages/new
	for os in darwin windows; do CGO_ENABLED=0 GOOS=$$os go vet -trimpath ./cmd/hookonce || exit 1; done
	cd internal/tool/release && go vet -mod=mod ./... && go test -mod=mod -count=1 -timeout 40m -v . -built $(CURDIR)/dist/packages

docs: ## write what pages say of providers, packages, commands and metrics from what the code says
	go run ./internal/tool/providerdoc
	go run ./internal/tool/house
	go test ./cmd/hookonce -run TestCommandsPage -update
	go test ./internal/gateway -run TestMetricsStandInAPage -update
	go test ./internal/tally -run TestWordsStandInAPage -update
	go test ./internal/diagnose -run TestCausesStandInAPage -update
	go test ./internal/alert -run TestRulesStandInAPage -update
	go test ./internal/tool/mutants -run TestFaultsStandInAPage -update
	go test ./cmd/hookonce/internal/endtoend -run TestRunsOfRecordStandInAPage -update

# What is compiled serves as often as possible: the modules of their own, the binary and the tests without the race detector that
# CI runs share what is compiled without cgo; vet and staticcheck look at what the tests beside them are made of.
#
# What only computes is left out of what the race detector watches: SQLite and the C library beneath it, as translated from C,
# cost four times their own time there, and elliptic curves and RSA five times theirs. The driver above the one, the packages
# above the others, and everything that calls those, are watched. Programs that tests build are built likewise.
#
# With -trimpath, what was compiled in one folder serves in the next, such as a new clone. Modules of their own would share
# less with this one by that.
UNWATCHED = modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory crypto/internal/fips140/nistec/... crypto/internal/fips140/bigmod
WATCHED = $(UNWATCHED:%=-gcflags=%=-race=false)

# How vet and staticcheck have compiled what they look at.
COMPILED ?= -trimpath

test: export HOOKONCE_TEST_SKIPS_LONG = 1
test: servers vetted ## what is run before a commit: all but the long tests, without the race detector; a quarter of an hour on two cores, once all is compiled
	@$(MAKE) --jobs=2 quick others staticcheck TRIM=

race: servers ## every test, under the race detector where it sees something; half an hour
	@$(MAKE) --jobs=2 watched unwatched TRIM=

ci: export COMPILED = $(WATCHED) -trimpath -race
ci: servers ## what CI runs: make race, and all else that make test checks
	@$(MAKE) vetted
	@$(MAKE) --jobs=2 watched others unwatched staticcheck TRIM=

# Many tests wait for a disk, a server or a time limit, so that one package more than there are cores takes turns. With more of them the
# machine does no more, and what has a time limit is not done within it. The packages that take longest begin first, so that the
# end does not wait for one of them. They have been vetted.
.PHONY: quick others watched unwatched
FIRST = ./cmd/hookonce/internal/endtoend ./internal/gateway ./sqlstore
PACKAGES = -vet=off -p $$(getconf _NPROCESSORS_ONLN) $(HANGS) $(FIRST) ./...

quick:
	GOFLAGS=-trimpath go test $(PACKAGES)

# The programs that tests build are watched as well, and little is compiled for them.
watched: export GOFLAGS = $(WATCHED) -trimpath -race
# Otherwise every program that is watched waits a second in its end, and tests start hundreds of them.
watched: export GORACE = atexit_sleep_ms=10
watched:
	go test $(PACKAGES)

unwatched: # the tests that testskip.Race keeps from the race detector
	CGO_ENABLED=0 GOFLAGS=-p=1 ./scripts/unraced -vet=off $(HANGS)

# The tests of modules of their own run beside the rest, one package after the other.
others: export CGO_ENABLED = 0
others: export GOFLAGS = -p=1
others: build oracle examples adapters browser
	cd internal/tool/bench && go vet -mod=mod ./... && go test -mod=mod -vet=off -count=1 $(HANGS) ./...

check: vetted staticcheck ## formatting, module file, vet, staticcheck

.PHONY: vetted staticcheck
vetted staticcheck: export GOFLAGS = $(COMPILED)
vetted:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt -w these files:"; echo "$$files"; exit 1; fi
	go mod verify
	go vet ./...

staticcheck:
	GOFLAGS= CGO_ENABLED=0 GOBIN=$(CURDIR)/bin go install $(STATICCHECK)
	./bin/staticcheck ./...

oracle: servers ## compare the catalogue, and deliveries, with the libraries that others publish
	cd internal/tool/oracle/node && npm ci --ignore-scripts --no-audit --no-fund --silent
	cd internal/tool/oracle && go vet -mod=mod . && go test -mod=mod -vet=off -count=1 $(HANGS) .

browser: servers ## look at the dashboard in Chromium: accessibility, policy, keyboard
	cd internal/tool/browser/node && npm ci --ignore-scripts --no-audit --no-fund --silent
	cd internal/tool/browser && go vet -mod=mod . && go test -mod=mod -vet=off -count=1 $(HANGS) .

screenshots: servers ## the pictures of the dashboard in docs/images
	cd internal/tool/browser && go test -mod=mod -vet=off -count=1 $(HANGS) -run TestScreenshots . -screenshots $(CURDIR)/docs/images

examples: servers ## the programs in examples, against real databases
	cd examples && go vet -mod=mod ./... && go test -mod=mod -vet=off -count=1 $(HANGS) ./...

servers: ## install what tests start (databases, PgBouncer, Node, psycopg for Python), if it is missing
	@./scripts/install-servers

adapters: servers ## the modules that bring the library to Prometheus, OpenTelemetry and DynamoDB
	cd dynamostore/internal/dynalite && npm ci --ignore-scripts --no-audit --no-fund --silent
	for m in hookonceprom hookonceotel dynamostore; do (cd $$m && go vet -mod=mod ./... && go test -mod=mod -vet=off -count=1 $(HANGS) ./...) || exit 1; done

ENDPOINT ?= aws
AWS_REGION ?= us-east-1

dynamodb: ## the suites of dynamostore on the DynamoDB of ENDPOINT (aws: the service, with AWS_PROFILE or AWS_ACCESS_KEY_ID), in two tables that are made and dropped; a few cents
	@if [ -n "$$AWS_PROFILE" ]; then eval "$$(aws configure export-credentials --profile "$$AWS_PROFILE" --format env)" || exit 1; fi; \
	cd dynamostore && go test -mod=mod -count=1 -timeout 60m -v . -dynamodb.endpoint=$(ENDPOINT) -dynamodb.region=$(AWS_REGION)

bench: servers ## the table of docs/performance.md, about seven minutes
	cd internal/tool/bench && go run -mod=mod .

bench-stores: servers ## the table of docs/storage.md, about two minutes
	go test -run '^$$' -bench . -benchtime 2s -count 3 ./internal/tool/storebench

SIZE ?= 20000000

bench-large: servers ## accept rate beside SIZE keys, against empty tables and files
	cd internal/tool/bench && go run -mod=mod . -only l,m -size $(SIZE)

backlog: servers ## a million events wait for one gateway
	go test -count=1 -timeout 20m -run TestBacklogDrains -v ./cmd/hookonce/internal/endtoend -backlog 1000000

kills: servers ## kill gateways and databases under load, twenty times each
	go test -count=1 -timeout 20m -run 'TestKillUnderLoad|TestKillOneOfThree|TestDatabaseStopsUnderFleet|TestStandbyIsPromoted' -v ./cmd/hookonce/internal/endtoend -kills 20

ENGINES ?= 1

.PHONY: engines
engines: ## PostgreSQL under Patroni, MariaDB Galera and Redis Cluster, each ENGINES times through what happens to it; ten minutes
	@./scripts/install-servers engines
	go test -count=1 -timeout 60m -run 'TestPatroni$$' -v ./cmd/hookonce/internal/endtoend -engines $(ENGINES)
	go test -count=1 -timeout 60m -run 'TestGalera$$' -v ./sqlstore -engines $(ENGINES)
	go test -count=1 -timeout 10m -run 'Cluster' -v ./redisstore ./internal/testserver/redistest

.PHONY: cells
cells: servers ## three cells, on PostgreSQL 15, 16 or 17, and 18, each with a standby that takes over, killed, parted and moved under load, and one lost, for five minutes
	@./scripts/install-servers versions
	go test -count=1 -timeout 20m -run TestCellsUnderFire -v ./internal/gateway -cells 5m

MAJORS ?= 15 16 17 18

.PHONY: versions
versions: servers ## what rests on PostgreSQL, with each of MAJORS; five to eight minutes each
	@./scripts/install-servers versions
	@./scripts/versions $(MAJORS)

chaos: servers ## every store while its server is harmed, 2 500 events in two copies each, about ten minutes
	go test -count=1 -timeout 60m -v ./internal/tool/chaos -events 2500

histories: servers ## stores on servers beside their model, in a thousand random histories each
	go test -count=1 -timeout 90m -v -run '^Test(Mattn|Pgx|MySQL|Conformance)$$/^(tx)?model$$' ./sqlstore ./pgstore ./internal/sqlapi -rapid.checks=1000

RECORD ?= 5000000
FAULTS ?= 500
FOR ?= 1h
MAJOR ?= 0
ONLY ?=

.PHONY: record
record: servers ## harm everything that the program stands on while RECORD events go through each store, or the one in ONLY (sqlite, postgres); two hours, or FOR for each
	go test -count=1 -timeout 0 -v -run 'TestRecord$$/$(ONLY)' ./cmd/hookonce/internal/endtoend -record $(RECORD) -record.faults $(FAULTS) -record.for $(FOR) -record.major $(MAJOR) -record.json $(CURDIR)/docs/record.json
	go test -run TestRunsOfRecordStandInAPage ./cmd/hookonce/internal/endtoend -update

.PHONY: mutants
mutants: servers ## plant faults in the laws, one after the other, and say whether the tests see them; half an hour
	go run ./internal/tool/mutants

attack: ## what strangers can do to a gateway, and what a genuine sender sees meanwhile, about five minutes
	go run ./internal/tool/attack

YEAR ?= 1h
SEED ?= 0

.PHONY: year
year: ## months of gateways, senders and applications in seconds, in plans drawn from SEED, for YEAR; a plan that breaks a law stays in testdata
	go test -count=1 -timeout 0 -v -run '^TestYear$$' ./internal/tool/year -year $(YEAR) -seed $(SEED) -keep

ops: servers ## the rules over weeks, and every query of the board against a Prometheus that scrapes a gateway under load
	go test -count=1 -timeout 15m -v ./internal/tool/monitoring -long

fuzz: ## every fuzz target for FUZZTIME each
	@./scripts/fuzz $(FUZZTIME)

clean:
	rm -rf bin dist
