package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Finding is something about a table that makes it lose or double work, or refuse it.
type Finding struct {
	// Table is the table's name.
	Table string
	// Setting is what is set, and Value what it is.
	Setting, Value string
	// Advice says what comes of it and what to do. One or two sentences.
	Advice string
	// Fault is set of what doubles work, or loses it. The others are what may surprise later.
	Fault bool
}

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("dynamodb %s: %s is %q: %s", f.Table, f.Setting, f.Value, f.Advice)
}

// Inspect looks at how the table is set up and returns what is wrong: replicas in other regions, missing expiry, missing
// protection. Call it when the program starts, and log what it finds. It changes nothing, and does without what the role may
// not ask (dynamodb:DescribeTable, DescribeTimeToLive, DescribeContinuousBackups); that it may not ask for the first, which
// tells of replicas, is a finding. Errors: otherwise those of [Store.Check].
func (s *Store) Inspect(ctx context.Context) (found []Finding, err error) {
	table, err := s.describe(ctx)
	switch {
	case err == nil:
		found = s.tableFindings(table)
	case denied(err):
		found = append(found, s.finding(false, "DescribeTable", "AccessDenied",
			"nobody has looked whether the table has replicas, between which work is doubled, nor at its key: allow dynamodb:DescribeTable."))
	default:
		return nil, err
	}
	ttl, err := s.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &s.table})
	if err = skipped(err); err != nil {
		return found, fmt.Errorf("dynamostore: inspect %s: %w", s.table, err)
	}
	if ttl != nil {
		found = append(found, s.expiryFindings(ttl.TimeToLiveDescription)...)
	}
	backups, err := s.client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &s.table})
	if err = skipped(err); err != nil {
		return found, fmt.Errorf("dynamostore: inspect %s: %w", s.table, err)
	}
	if backups != nil && backups.ContinuousBackupsDescription != nil {
		found = append(found, s.backupFindings(backups.ContinuousBackupsDescription)...)
	}
	return found, nil
}

// skipped is err, but nil for what the role may not ask, or the service does not know.
func skipped(err error) error {
	var api smithy.APIError
	if denied(err) || errors.As(err, &api) && api.ErrorCode() == "UnknownOperationException" {
		return nil
	}
	return err
}

func (s *Store) finding(fault bool, setting, value, advice string) Finding {
	return Finding{Table: s.table, Setting: setting, Value: value, Advice: advice, Fault: fault}
}

func (s *Store) tableFindings(t *types.TableDescription) (found []Finding) {
	var regions []string
	for _, r := range t.Replicas {
		regions = append(regions, aws.ToString(r.RegionName))
	}
	switch {
	case len(regions) == 0:
	case t.MultiRegionConsistency == types.MultiRegionConsistencyStrong:
		found = append(found, s.finding(false, "MultiRegionConsistency", string(t.MultiRegionConsistency),
			"claims hold in all regions, in lease mode: strongly consistent global tables refuse transactions, so Within and Commit fail, and they do not expire items, so call Purge."))
	default:
		found = append(found, s.finding(true, "Replicas", strings.Join(regions, ", "),
			"each region decides conditions by its own copy, and the last writer wins: two regions that get the same event both do the work. Send all requests for a key to one region, or use a table without replicas, or one with multi-Region strong consistency."))
	}
	if !aws.ToBool(t.DeletionProtectionEnabled) {
		found = append(found, s.finding(false, "DeletionProtectionEnabled", "false",
			"whoever deletes the table makes every event new: protect it."))
	}
	if b := t.BillingModeSummary; b == nil || b.BillingMode == types.BillingModeProvisioned {
		found = append(found, s.finding(false, "BillingMode", string(types.BillingModeProvisioned),
			"above the capacity that is provisioned claims are turned away and answered 503, so that senders come again: see that it scales, or pay by the request."))
	}
	if t.TableStatus != types.TableStatusActive && t.TableStatus != types.TableStatusUpdating {
		found = append(found, s.finding(true, "TableStatus", string(t.TableStatus), "the table cannot be written now."))
	}
	return found
}

func (s *Store) expiryFindings(d *types.TimeToLiveDescription) []Finding {
	if expires(d) {
		return nil
	}
	value := string(types.TimeToLiveStatusDisabled)
	if d != nil {
		value = string(d.TimeToLiveStatus)
		if d.AttributeName != nil {
			value += " by " + *d.AttributeName
		}
	}
	if s.retention == 0 && len(s.retained) == 0 {
		return nil
	}
	return []Finding{s.finding(false, "TimeToLive", value,
		"done claims are never deleted, and the table grows: enable it with the attribute "+attrExpiry+".")}
}

func (s *Store) backupFindings(d *types.ContinuousBackupsDescription) []Finding {
	if p := d.PointInTimeRecoveryDescription; p != nil && p.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled {
		return nil
	}
	return []Finding{s.finding(false, "PointInTimeRecovery", string(types.PointInTimeRecoveryStatusDisabled),
		"a table that a program emptied or overwrote cannot be had back: enable it if effects are in DynamoDB as well, and restore both to one time.")}
}
