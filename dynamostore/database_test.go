package dynamostore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/dynamostore"
	"github.com/hookonce/hookonce/dynamostore/internal/dynalite"
	"github.com/hookonce/hookonce/dynamostore/internal/dynamofake"
	"github.com/hookonce/hookonce/storetest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if err := errors.Join(dropTables(), dynalite.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// The service that the suites run on in place of the stand-ins: see `make dynamodb`.
var (
	endpoint = flag.String("dynamodb.endpoint", "", "URL of a DynamoDB to run the suites on; \"aws\": the service itself")
	region   = flag.String("dynamodb.region", "us-east-1", "its region")
)

// backend is a DynamoDB, or what stands in for one.
type backend struct {
	url string // empty: the service itself
	// own is whether each case has tables of its own; otherwise all share two, and a case begins by emptying them.
	own bool
}

// fake returns the stand-in that has transactions, or the service that the command line names.
func fake(t testing.TB) backend {
	switch *endpoint {
	case "":
		return backend{dynamofake.Start(t).URL(), true}
	case "aws":
		return backend{}
	}
	return backend{url: *endpoint}
}

// standIn leaves a test out that needs a stand-in.
func standIn(t testing.TB) *dynamofake.Server {
	t.Helper()
	if *endpoint != "" {
		t.Skip("it needs the stand-in")
	}
	return dynamofake.Start(t)
}

// client returns a client, like that of a process of its own.
func (b backend) client(n *network) *dynamodb.Client {
	o := dynamodb.Options{
		Region: *region, HTTPClient: &http.Client{Transport: n},
		Credentials: aws.CredentialsProviderFunc(credentials),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			if b.url != "" {
				o.MaxBackoff, o.RateLimiter = time.Millisecond, nothingSpent{}
				o.MaxAttempts = 12 // with three, a read that noise strikes three times would fail a test now and then
			}
		}),
	}
	if b.url != "" {
		o.BaseEndpoint = &b.url
	}
	return dynamodb.New(o)
}

// nothingSpent lets the client repeat requests as often as tests lose them.
type nothingSpent struct{}

func (nothingSpent) GetToken(context.Context, uint) (func() error, error) {
	return func() error { return nil }, nil
}
func (nothingSpent) AddTokens(uint) error { return nil }

// credentials are those of the environment, and otherwise ones that only a stand-in takes.
func credentials(context.Context) (aws.Credentials, error) {
	id := os.Getenv("AWS_ACCESS_KEY_ID")
	if *endpoint == "" || id == "" {
		return aws.Credentials{AccessKeyID: "obviously-fake", SecretAccessKey: "obviously-fake"}, nil
	}
	return aws.Credentials{AccessKeyID: id, SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN")}, nil
}

// cases numbers the tables of this process.
var cases atomic.Int64

// tables are those of one case.
type tables struct {
	backend
	claims, effects string
	client          *dynamodb.Client // without faults, for what the case looks at
}

// open makes tables of the case's own, or empties the shared ones.
func (b backend) open(t testing.TB) *tables {
	t.Helper()
	db := &tables{backend: b, client: b.client(&network{})}
	if !b.own {
		db.claims, db.effects = sharedTables(t, b)
		db.empty(t, db.claims)
		db.empty(t, db.effects)
		return db
	}
	name := fmt.Sprintf("case-%d", cases.Add(1))
	db.claims, db.effects = name, name+"-effects"
	for _, table := range []string{db.claims, db.effects} {
		must(t, dynamostore.New(db.client, dynamostore.WithTable(table)).CreateTable(t.Context()))
	}
	return db
}

// empty deletes everything in a table.
func (db *tables) empty(t testing.TB, table string) {
	for _, i := range db.all(t.Context(), t, table) {
		_, err := db.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{"pk": i["pk"]}})
		must(t, err)
	}
}

// all returns every item of a table.
func (db *tables) all(ctx context.Context, t testing.TB, table string) (items []map[string]types.AttributeValue) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(db.client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		must(t, err)
		items = append(items, page.Items...)
	}
	return items
}

// store opens a store on the tables over a network of its own.
func (db *tables) store(n *network, opts ...dynamostore.Option) *dynamostore.Store {
	return dynamostore.New(db.backend.client(n), append([]dynamostore.Option{dynamostore.WithTable(db.claims)}, opts...)...)
}

// Effects are counters.

func (db *tables) effect(_ context.Context, b *dynamostore.Batch, id string) error {
	return b.Update(types.Update{
		TableName: &db.effects, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "effect:" + id}},
		UpdateExpression: aws.String("SET n = if_not_exists(n, :zero) + :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":zero": &types.AttributeValueMemberN{Value: "0"}, ":one": &types.AttributeValueMemberN{Value: "1"},
		},
	})
}

func (db *tables) count(ctx context.Context, t testing.TB) (map[string]int, error) {
	counts := map[string]int{}
	for _, i := range db.all(ctx, t, db.effects) {
		n, err := strconv.Atoi(i["n"].(*types.AttributeValueMemberN).Value)
		if err != nil {
			return nil, err
		}
		counts[strings.TrimPrefix(i["pk"].(*types.AttributeValueMemberS).Value, "effect:")] = n
	}
	return counts, nil
}

// The tables that cases share on a service where making one takes long. Their names are new each time, so that nothing of
// anybody's is touched.
var (
	sharedOnce  sync.Once
	sharedErr   error
	sharedNames []string
	sharedOn    *dynamodb.Client
)

func sharedTables(t testing.TB, b backend) (claims, effects string) {
	t.Helper()
	sharedOnce.Do(func() {
		sharedOn = b.client(&network{})
		name := fmt.Sprintf("hookonce-test-%d", time.Now().UnixNano())
		for _, table := range []string{name, name + "-effects"} {
			sharedNames = append(sharedNames, table)
			err := dynamostore.New(sharedOn, dynamostore.WithTable(table)).CreateTable(context.Background())
			var api smithy.APIError
			if errors.As(err, &api) && api.ErrorCode() == "UnknownOperationException" {
				err = nil // dynalite knows no expiry; the table is there
			}
			sharedErr = errors.Join(sharedErr, err)
		}
	})
	must(t, sharedErr)
	return sharedNames[0], sharedNames[1]
}

// dropTables deletes the shared tables.
func dropTables() (err error) {
	for _, name := range sharedNames {
		_, unprotect := sharedOn.UpdateTable(context.Background(), &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: aws.Bool(false)})
		wait := dynamodb.NewTableExistsWaiter(sharedOn).Wait(context.Background(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute)
		_, drop := sharedOn.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
		if drop != nil {
			err = errors.Join(err, fmt.Errorf("delete the table %s by hand: %w", name, errors.Join(unprotect, wait, drop)))
		}
	}
	return err
}

// suite is the conformance suite's configuration. Each store has a client of its own, like a process; the faults of a case
// strike all of them.
func suite(b backend, opts ...dynamostore.Option) storetest.TxConfig[*dynamostore.Batch] {
	return suiteOver(b, func(testing.TB) *network { return &network{} }, opts...)
}

// suiteOver is suite with networks of another kind.
func suiteOver(b backend, connect func(testing.TB) *network, opts ...dynamostore.Option) storetest.TxConfig[*dynamostore.Batch] {
	return storetest.TxConfig[*dynamostore.Batch]{
		AtCommit: true, MaxResponse: dynamostore.MaxResponse,
		Open: func(t testing.TB) storetest.Database[*dynamostore.Batch] {
			db, n := b.open(t), connect(t)
			committer := db.store(n, opts...)
			return storetest.Database[*dynamostore.Batch]{
				Store: func(o storetest.Options) hookonce.TxStore[*dynamostore.Batch] {
					with := append([]dynamostore.Option{dynamostore.WithClock(o.Clock)}, opts...)
					if o.Wait > 0 {
						with = append(with, dynamostore.WithWait(o.Wait))
					}
					return db.store(n, with...)
				},
				Begin:    func(context.Context) (*dynamostore.Batch, error) { return dynamostore.NewBatch(), nil },
				Commit:   committer.Commit,
				Rollback: func(context.Context, *dynamostore.Batch) error { return nil },
				Effect:   db.effect,
				Effects:  func(ctx context.Context) (map[string]int, error) { return db.count(ctx, t) },

				FailCommit: n.failCommit,
				FailWrite:  n.fail,
			}
		},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
