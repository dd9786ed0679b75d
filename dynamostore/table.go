package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hookonce/hookonce"
)

// tableTimeout bounds how long CreateTable waits for the table.
const tableTimeout = 5 * time.Minute

// CreateTable makes the store's table, if it is not there, and has DynamoDB delete what has expired. It returns when the
// table can be used, after five minutes at most. The table is paid for by the request and protected against deletion;
// docs/dynamodb.md has it for CloudFormation, Terraform and the command line. It needs rights that a store itself does
// without: dynamodb:CreateTable, DescribeTable, UpdateTimeToLive and DescribeTimeToLive.
func (s *Store) CreateTable(ctx context.Context) error {
	_, err := s.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:                 &s.table,
		AttributeDefinitions:      []types.AttributeDefinition{{AttributeName: aws.String(attrKey), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:                 []types.KeySchemaElement{{AttributeName: aws.String(attrKey), KeyType: types.KeyTypeHash}},
		BillingMode:               types.BillingModePayPerRequest,
		DeletionProtectionEnabled: aws.Bool(true),
	})
	var there *types.ResourceInUseException
	if err != nil && !errors.As(err, &there) {
		return fmt.Errorf("dynamostore: create the table %s: %w", s.table, explain(err))
	}
	waiter := dynamodb.NewTableExistsWaiter(s.client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = time.Second })
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &s.table}, tableTimeout); err != nil {
		return fmt.Errorf("dynamostore: wait for the table %s: %w", s.table, err)
	}
	if err := s.Check(ctx); err != nil {
		return err
	}
	return s.expire(ctx)
}

// expire has DynamoDB delete what has expired.
func (s *Store) expire(ctx context.Context) error {
	is, err := s.expires(ctx)
	if err == nil && !is {
		_, err = s.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               &s.table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(attrExpiry), Enabled: aws.Bool(true)},
		})
		if err != nil { // also where another process was faster
			is, _ = s.expires(ctx)
		}
	}
	if err != nil && !is {
		return fmt.Errorf("dynamostore: have what has expired deleted from the table %s: %w", s.table, explain(err))
	}
	return nil
}

// expires asks whether DynamoDB deletes what has expired.
func (s *Store) expires(ctx context.Context) (bool, error) {
	ttl, err := s.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &s.table})
	return err == nil && expires(ttl.TimeToLiveDescription), err
}

// expires reports whether DynamoDB deletes what has expired by the right attribute.
func expires(d *types.TimeToLiveDescription) bool {
	if d == nil || aws.ToString(d.AttributeName) != attrExpiry {
		return false
	}
	return d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling
}

// Check returns an error that wraps [hookonce.ErrSchemaMissing] unless the table is there and has the key that the store needs.
// It changes nothing, and needs the right dynamodb:DescribeTable.
func (s *Store) Check(ctx context.Context) error {
	_, err := s.describe(ctx)
	return err
}

// describe returns what the service says of the table, if it can be used.
func (s *Store) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table})
	if err != nil {
		return nil, fmt.Errorf("dynamostore: the table %s: %w", s.table, explain(err))
	}
	if !rightKey(out.Table) {
		return nil, fmt.Errorf("dynamostore: the key of the table %s must be %q (S) alone, without a sort key: %w", s.table, attrKey, hookonce.ErrSchemaMissing)
	}
	return out.Table, nil
}

func rightKey(t *types.TableDescription) bool {
	if len(t.KeySchema) != 1 || aws.ToString(t.KeySchema[0].AttributeName) != attrKey {
		return false
	}
	for _, d := range t.AttributeDefinitions {
		if aws.ToString(d.AttributeName) == attrKey {
			return d.AttributeType == types.ScalarAttributeTypeS
		}
	}
	return false
}
