package sqlite

import (
	"database/sql/driver"

	"github.com/hookonce/hookonce/internal/journal"
)

// freeChoicesSQL finds what may be taken for a destination and is in no ordering group: among ?3 from each end of what is
// due, and from somewhere in the middle.
const freeChoicesSQL = `WITH somewhere AS MATERIALIZED (
		SELECT min(due_at) + (?2 - min(due_at)) * abs(random() % 1000) / 1000 AS at FROM {{.}}deliveries
		WHERE destination = ?1 AND resource IS NULL AND due_at <= ?2
	), choice AS (
		SELECT * FROM (SELECT event_id FROM {{.}}deliveries
			WHERE destination = ?1 AND resource IS NULL AND due_at <= ?2 ORDER BY due_at DESC, event_id DESC LIMIT ?3)
		UNION SELECT * FROM (SELECT event_id FROM {{.}}deliveries
			WHERE destination = ?1 AND resource IS NULL AND due_at <= ?2 ORDER BY due_at, event_id LIMIT ?3)
		UNION SELECT * FROM (SELECT event_id FROM {{.}}deliveries
			WHERE destination = ?1 AND resource IS NULL AND due_at <= ?2 AND due_at >= (SELECT at FROM somewhere)
			ORDER BY due_at, event_id LIMIT ?3)
	)
	SELECT c.event_id, d.tries = 0 AND d.last_error = '', coalesce(e.source, ''), coalesce(e.event_type, ''),
		coalesce(e.resource, ''), d.due_at
	FROM choice c JOIN {{.}}deliveries d ON d.event_id = c.event_id AND d.destination = ?1
	LEFT JOIN {{.}}events e ON e.id = c.event_id`

// groupChoicesSQL finds ordering groups to look at: the event that had the turn last, and the oldest that has none.
const groupChoicesSQL = `WITH choice AS (
		SELECT * FROM (SELECT resource, event_id FROM {{.}}lanes WHERE destination = ?1 AND due_at <= ?2 ORDER BY due_at LIMIT ?3)
		UNION SELECT * FROM (SELECT resource, event_id FROM {{.}}lanes WHERE destination = ?1 AND due_at <= ?2 ORDER BY due_at DESC LIMIT ?3)
	)
	SELECT c.resource, coalesce(c.event_id, 0), coalesce(d.event_id, 0), coalesce(d.tries = 0 AND d.last_error = '', 0),
		coalesce(e.source, ''), coalesce(e.event_type, ''), coalesce(d.due_at <= ?2, 0)
	FROM choice c
	LEFT JOIN {{.}}deliveries d ON d.destination = ?1 AND d.event_id = coalesce(
		(SELECT event_id FROM {{.}}deliveries WHERE event_id = c.event_id AND destination = ?1 AND state = 'processing'),
		(SELECT event_id FROM {{.}}deliveries WHERE destination = ?1 AND resource = c.resource AND state <> 'dead'
			ORDER BY event_id LIMIT 1))
	LEFT JOIN {{.}}events e ON e.id = d.event_id`

// pick takes for one destination what [journal.Want.Choose] prefers.
func (t *taking) pick(p *part) error {
	var choices []journal.Choice
	due, last := map[int64]int64{}, map[string]int64{} // by event; who had the turn, by ordering group
	if err := t.freeChoices.query(func(row []driver.Value) error {
		c := journal.Choice{EventID: row[0].(int64), Untried: row[1].(int64) != 0}
		c.Class = journal.Class{Source: row[2].(string), Type: row[3].(string), Resource: row[4].(string)}
		choices, due[c.EventID] = append(choices, c), row[5].(int64)
		return nil
	}, p.Destination, t.now, int64(journal.PickAmong)); err != nil {
		return err
	}
	var idle []string // ordering groups that are looked at for nothing: it has to be noted when they are due
	if err := t.groupChoices.query(func(row []driver.Value) error {
		c := journal.Choice{OrderingGroup: row[0].(string), EventID: row[2].(int64), Untried: row[3].(int64) != 0}
		c.Class = journal.Class{Source: row[4].(string), Type: row[5].(string), Resource: c.OrderingGroup}
		last[c.OrderingGroup] = row[1].(int64)
		if row[6].(int64) != 0 {
			choices = append(choices, c)
		} else {
			idle = append(idle, c.OrderingGroup)
		}
		return nil
	}, p.Destination, t.now, int64(journal.PickAmong)); err != nil {
		return err
	}
	for _, c := range p.Choose(choices, min(p.Deliveries, t.left)) {
		if !t.room(p) {
			break
		}
		var err error
		if c.OrderingGroup != "" {
			err = t.group(p, c.OrderingGroup, last[c.OrderingGroup])
		} else {
			_, err = t.take(p, c.EventID, due[c.EventID])
		}
		if err != nil {
			return err
		}
	}
	for _, group := range idle {
		if err := t.group(p, group, last[group]); err != nil {
			return err
		}
	}
	return nil
}
