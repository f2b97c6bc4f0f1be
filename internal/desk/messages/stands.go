package messages

import (
	"context"
	"fmt"

	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// stands says where a message stands and why it goes no further.
func stands(ctx context.Context, rows *store.Store, m *store.Message, route *router.Router, led desk.Leader, refusal string) ([]string, error) {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	name := Number(rows, m.Ref())
	switch m.Status {
	case outbox.Sent:
		say("It was sent and acked by Kafka. Nothing has reported that it was consumed.")
	case outbox.Consumed:
		say("It was sent, and a consumer has reported back.")
	case outbox.Discarded:
		say("A person has given it up. Send it after all: outbox-relay messages retry %s --status discarded --resend --yes", name)
	case outbox.Foreign:
		say("The status %d is none of source.statuses: the relay leaves the row alone.", m.Number)
	case outbox.Dead:
		say("It is a dead letter: a person has to decide. Its last error says why, where the table has that column.")
		if refusal != "" {
			say("As it stands it would be refused again: correct the row or the configuration first.")
		}
		say("Send it again: outbox-relay messages retry %s --yes. Give it up: outbox-relay messages discard %s --yes", name, name)
	case outbox.Failed:
		say("It was refused %s and is tried again when next_retry_time has come.", human.Plural(int64(m.RetryCount), "time"))
	case outbox.Pending:
		pending(m, refusal, say)
	}
	if m.Status != outbox.Pending && m.Status != outbox.Failed {
		return lines, nil
	}
	if led.Known && !led.Led && led.Lock != "none" {
		say("No relay leads the source, so nothing is sent: start one with outbox-relay run.")
	}
	if m.Status == outbox.Pending && parked(m) {
		letter, err := holder(ctx, rows, route, m)
		if err != nil {
			return nil, err
		}
		if letter == "" {
			say("Somebody has decided about that one: the relay sends this one with its next sweeps.")
		} else {
			say("The dead letter has id %s. Let its key go on: outbox-relay messages retry %s --yes, or outbox-relay messages discard %s --yes", letter, letter, letter)
		}
		return lines, nil
	}
	older, err := blockers(ctx, rows, m)
	if err != nil {
		return nil, err
	}
	if older != "" {
		say("An older message of its topic has failed (%s): the topic is closed until that one is acked, and this one waits behind it. See outbox-relay status.", older)
	}
	return lines, nil
}

func pending(m *store.Message, refusal string, say func(string, ...any)) {
	switch {
	case refusal != "":
		say("It can't be sent as it is; the relay will make it a dead letter.")
	case parked(m):
		say("It waits behind a dead letter of its key (router.after_dead: hold).")
	case m.NextRetry == "":
		say("It waits for the stream; if that has missed it, for the next sweep.")
	case m.Due > 0:
		say("It is not due yet: it is delayed by its writer, or a sweep has just claimed it. It is sent in %s.", human.Duration(m.Due))
	default:
		say("It is due: the next sweep sends it, behind older ones of its topic.")
	}
}

func parked(m *store.Message) bool {
	_, ok := store.ParkedSlot(&m.Row)
	return ok
}

// holder names a dead letter behind which a parked message waits, "" when there is none any more.
func holder(ctx context.Context, rows *store.Store, route *router.Router, m *store.Message) (string, error) {
	slot, _ := store.ParkedSlot(&m.Row)
	dead, err := rows.DeadLetters(ctx)
	if err != nil {
		return "", err
	}
	name := ""
	for table, ids := range dead {
		err := rows.ReadDead(ctx, table, ids, func(row *outbox.Row) {
			if name == "" && store.SlotOf(row.Topic, route.Key(row)) == slot {
				name = Number(rows, row.Ref())
			}
		})
		if err != nil {
			return "", err
		}
	}
	return name, nil
}

// blockers names a failed message of the same topic that is older.
func blockers(ctx context.Context, rows *store.Store, m *store.Message) (string, error) {
	failed, err := rows.List(ctx, store.Filter{Table: m.Table.String(), Topic: m.Topic, Statuses: []outbox.Status{outbox.Failed}, Limit: sampleSize})
	if err != nil {
		return "", err
	}
	for i := range failed {
		if other := &failed[i]; other.ID < m.ID {
			return "id " + Number(rows, other.Ref()), nil
		}
	}
	return "", nil
}
