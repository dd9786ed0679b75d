package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/dynamostore"
	"github.com/hookonce/hookonce/storetest"
)

func TestCheck(t *testing.T) {
	server := standIn(t)
	b := backend{server.URL(), true}
	c := b.client(&network{})
	s := dynamostore.New(c)
	if err := s.Check(t.Context()); !errors.Is(err, hookonce.ErrSchemaMissing) {
		t.Errorf("no table: %v", err)
	}
	for what, err := range map[string]error{
		"Claim":  errorOf(s.Claim(t.Context(), request("evt_1"))),
		"Lookup": errorOf(s.Lookup(t.Context(), request("evt_1").Ref)),
		"Purge":  errorOf(s.Purge(t.Context(), hookonce.PurgeRequest{Limit: 1})),
		"Within": errorOf(s.Within(t.Context(), request("evt_1"), func(*dynamostore.Batch, hookonce.Claim) error { return nil })),
	} {
		if !errors.Is(err, hookonce.ErrSchemaMissing) {
			t.Errorf("%s without a table: %v", what, err)
		}
	}
	for range 2 { // the second finds it there
		must(t, s.CreateTable(t.Context()))
	}
	must(t, s.Check(t.Context()))
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("other"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	must(t, err)
	if err := dynamostore.New(c, dynamostore.WithTable("other")).CreateTable(t.Context()); !errors.Is(err, hookonce.ErrSchemaMissing) || !strings.Contains(err.Error(), "pk") {
		t.Errorf("a table with another key: %v", err)
	}
}

func errorOf[V any](_ V, err error) error { return err }

// Of two processes that start together each finds that nothing expires, and the service takes the first word alone.
func TestCreateTableAtOnce(t *testing.T) {
	b := backend{standIn(t).URL(), true}
	n := &network{}
	var first error
	n.lose(loss{operations: "DescribeTimeToLive", answered: true, then: func(r *http.Request) (*http.Response, error) {
		answer, err := http.DefaultTransport.RoundTrip(r)
		first = dynamostore.New(b.client(&network{})).CreateTable(context.Background())
		return answer, err
	}})
	must(t, dynamostore.New(b.client(n)).CreateTable(t.Context()))
	must(t, first)

	n = &network{}
	n.lose(loss{operations: "UpdateTimeToLive", answered: true, then: refusing("ValidationException", "")})
	err := dynamostore.New(b.client(n), dynamostore.WithTable("other")).CreateTable(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ValidationException") {
		t.Errorf("nothing expires, and the error is %v", err)
	}
}

// A table of the handler's that is missing, or that the role may not write to, is not told as the store's own.
func TestTheHandlersTables(t *testing.T) {
	db := fake(t).open(t)
	n := &network{}
	s := db.store(n)
	for _, key := range []string{"evt_1", ""} {
		refused := func(table string, says ...string) {
			t.Helper()
			_, err := s.Within(t.Context(), request(key), func(b *dynamostore.Batch, _ hookonce.Claim) error {
				return errors.Join(db.effect(t.Context(), b, "evt_1"), b.Put(types.Put{TableName: &table, Item: item{"pk": text("x")}}))
			})
			for _, word := range says {
				if err == nil || errors.Is(err, hookonce.ErrSchemaMissing) || !strings.Contains(err.Error(), word) {
					t.Errorf("%q is answered %v, want %q", key, err, word)
				}
			}
		}
		refused("nowhere", fmt.Sprintf("[%q %q %q]", db.effects, "nowhere", db.claims))
		n.lose(loss{operations: "TransactWriteItems", answered: true, then: refusing("AccessDeniedException", "")})
		refused(db.effects, "a right that docs/dynamodb.md lists, or one on a table that the handler writes to")
	}
	effects(t, db, nil)
}

// What doubles work is found, and what may surprise later.
func TestInspect(t *testing.T) {
	server := standIn(t)
	b := backend{server.URL(), true}
	c := b.client(&network{})
	plain := func(name string, replace func(*dynamodb.CreateTableInput)) *dynamostore.Store {
		in := &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		}
		replace(in)
		_, err := c.CreateTable(t.Context(), in)
		must(t, err)
		return dynamostore.New(c, dynamostore.WithTable(name))
	}
	made := func(name string) *dynamostore.Store {
		s := dynamostore.New(c, dynamostore.WithTable(name))
		must(t, s.CreateTable(t.Context()))
		return s
	}
	eventual, strong := made("eventual"), made("strong")
	wrong := plain("wrong-attribute", func(in *dynamodb.CreateTableInput) { in.DeletionProtectionEnabled = aws.Bool(true) })
	made("closed")
	closed := &network{}
	closed.lose(loss{operations: "DescribeTable", answered: true, then: refusing("AccessDeniedException", "")})
	server.Replicate("eventual", "", "eu-west-1", "us-east-1")
	server.Replicate("strong", "STRONG", "eu-west-1", "us-east-1")
	_, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String("wrong-attribute"), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expiration"), Enabled: aws.Bool(true)},
	})
	must(t, err)
	for name, test := range map[string]struct {
		store  *dynamostore.Store
		want   []string
		faults int
	}{
		"made by CreateTable": {made("made"), []string{"PointInTimeRecovery"}, 0},
		"bare": {plain("bare", func(in *dynamodb.CreateTableInput) {
			in.BillingMode, in.ProvisionedThroughput = types.BillingModeProvisioned, &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)}
		}), []string{"DeletionProtectionEnabled", "BillingMode", "TimeToLive", "PointInTimeRecovery"}, 0},
		"eventually consistent copies": {eventual, []string{"Replicas", "PointInTimeRecovery"}, 1},
		"strongly consistent copies":   {strong, []string{"MultiRegionConsistency", "PointInTimeRecovery"}, 0},
		"the table is not to be seen":  {dynamostore.New(b.client(closed), dynamostore.WithTable("closed")), []string{"DescribeTable", "PointInTimeRecovery"}, 0},
		"expiry by another attribute":  {wrong, []string{"TimeToLive", "PointInTimeRecovery"}, 0},
	} {
		found, err := test.store.Inspect(t.Context())
		must(t, err)
		var settings []string
		faults := 0
		for _, f := range found {
			settings = append(settings, f.Setting)
			if f.Fault {
				faults++
			}
			if line := f.String(); !strings.Contains(line, f.Table) || !strings.Contains(line, f.Advice) || f.Value == "" {
				t.Errorf("%s: a finding says too little: %#v", name, f)
			}
		}
		if !slices.Equal(settings, test.want) || faults != test.faults {
			t.Errorf("%s: found %q with %d faults, want %q with %d", name, settings, faults, test.want, test.faults)
		}
	}
	if _, err := dynamostore.New(c, dynamostore.WithTable("nowhere")).Inspect(t.Context()); !errors.Is(err, hookonce.ErrSchemaMissing) {
		t.Errorf("no table: %v", err)
	}
}

// Done claims expire after the retention of their source, and nothing else ever does.
func TestExpiry(t *testing.T) {
	db := fake(t).open(t)
	clock := storetest.NewClock()
	s := db.store(&network{}, dynamostore.WithClock(clock.Now), dynamostore.WithRetention(time.Hour), dynamostore.WithSourceRetention("kept", 0), dynamostore.WithSourceRetention("once:fee", time.Minute))
	expiry := func(key string) string {
		t.Helper()
		out, err := db.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &db.claims, Key: item{"pk": text("claim:" + key)}, ConsistentRead: aws.Bool(true)})
		must(t, err)
		if out.Item == nil {
			t.Fatalf("there is no %s", key)
		}
		if n, ok := out.Item["expires"].(*types.AttributeValueMemberN); ok {
			return n.Value
		}
		return ""
	}
	after := func(d time.Duration) string {
		return (number(int(clock.Now().Add(d).Unix()) + 1)).(*types.AttributeValueMemberN).Value
	}
	in := func(source string) hookonce.ClaimRequest {
		req := request("k")
		req.Source = source
		return req
	}
	for source, want := range map[string]string{"billing": after(time.Hour), "kept": "", "once:fee": after(time.Minute), "once:other": ""} {
		ref := hookonce.JoinKey(source, "k")
		c := claim(t, s, in(source), hookonce.Acquired)
		open := func(what string) {
			t.Helper()
			if got := expiry(ref); got != "" {
				t.Errorf("a claim of %s that is %s expires at %s", source, what, got)
			}
		}
		open("held")
		must(t, s.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined, Dead: true}))
		open("dead")
		must(t, s.Complete(t.Context(), claim(t, s, in(source), hookonce.Acquired)))
		if got := expiry(ref); got != want {
			t.Errorf("a done claim of %s expires at %q, want %q", source, got, want)
		}
	}
	_, err := s.Within(t.Context(), request("tx"), func(*dynamostore.Batch, hookonce.Claim) error { return nil })
	must(t, err)
	if got := expiry(hookonce.JoinKey("billing", "tx")); got != after(time.Hour) {
		t.Errorf("a claim of a transaction expires at %q, want %q", got, after(time.Hour))
	}
	if _, err := s.Within(t.Context(), request("failed"), func(*dynamostore.Batch, hookonce.Claim) error { return errDeclined }); !errors.Is(err, errDeclined) {
		t.Fatal(err)
	}
	if got := expiry(hookonce.JoinKey("billing", "failed")); got != "" {
		t.Errorf("the trace of a failure expires at %q", got)
	}
	// A clock that says 1970 says nothing about an age.
	wrong := db.store(&network{}, dynamostore.WithClock(func() time.Time { return time.Unix(1, 0) }))
	must(t, wrong.Complete(t.Context(), claim(t, wrong, request("wrong"), hookonce.Acquired)))
	if got := expiry(hookonce.JoinKey("billing", "wrong")); got != "" {
		t.Errorf("a claim of 1970 expires at %q", got)
	}
}

// A table that other programs write to is not taken for the store's own.
func TestForeignItems(t *testing.T) {
	db := fake(t).open(t)
	s := db.store(&network{})
	for key, i := range map[string]item{
		"claim:7:billing3:one": {"st": text("done")},
		"claim:7:billing3:two": {"st": text("done"), "tok": text("x"), "att": text("y")},
		"something":            {"st": text("done"), "upd": number(1), "att": text("y")},
	} {
		i["pk"] = text(key)
		_, err := db.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &db.claims, Item: i})
		must(t, err)
	}
	for _, key := range []string{"one", "two"} {
		if c, err := s.Claim(t.Context(), request(key)); err == nil || !strings.Contains(err.Error(), "own") {
			t.Errorf("%s: claimed as %#v: %v", key, c, err)
		}
	}
	n, err := s.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: 10})
	if n != 0 || err != nil {
		t.Errorf("purged %d: %v", n, err)
	}
}

func TestNewRefusesNonsense(t *testing.T) {
	c := backend{url: "http://127.0.0.1:1"}.client(&network{})
	for name, f := range map[string]func(){
		"no client":        func() { dynamostore.New(nil) },
		"no clock":         func() { dynamostore.New(c, dynamostore.WithClock(nil)) },
		"no table":         func() { dynamostore.New(c, dynamostore.WithTable("")) },
		"no wait":          func() { dynamostore.New(c, dynamostore.WithWait(0)) },
		"retention":        func() { dynamostore.New(c, dynamostore.WithRetention(time.Millisecond)) },
		"source retention": func() { dynamostore.New(c, dynamostore.WithSourceRetention("x", -time.Hour)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			f()
		}()
	}
}
