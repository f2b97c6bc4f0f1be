package relay_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

// Each test here is a story of router.after_dead: hold.

func holding() relay.Config {
	cfg := manner{hold: true}.config()
	cfg.Sweep.Interval = time.Second
	return cfg
}

// behindADeadLetter has a dead letter of key k and three messages of k parked behind it, while key other flows.
func behindADeadLetter(t *testing.T, w *world) (p *process, letter string, behind []string) {
	t.Helper()
	p = startWith(t, w, 0, holding())
	pause(t.Context(), time.Second)
	w.commitOne("t", "k")
	letter = w.poison("t", "k")
	for range 3 {
		behind = append(behind, w.commitOne("t", "k"))
		other := w.commitOne("t", "other")
		until(t, "another key's ack", func() bool { return w.position(other) >= 0 })
	}
	until(t, "the parking", func() bool { return w.parked() == 3 })
	require.Equal(t, outbox.Dead, w.status(letter))
	for _, id := range behind {
		require.Negative(t, w.position(id), "it passed its dead letter")
	}
	return p, letter, behind
}

func TestHeldKeyGoesOnInOrderAfterARetry(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]decision{"ByCommand": retryIt, "BySQL": retryBySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(1)
				p, letter, behind := behindADeadLetter(t, w)
				w.decide(what, true)
				w.settle(t, time.Minute)
				last := w.commitOne("t", "k")
				w.settle(t, time.Minute)
				require.NoError(t, p.stop())
				for _, id := range append(behind, last) {
					w.requireOrder(t, letter, id)
					letter = id
				}
				require.Zero(t, w.verdict(t))
			})
		})
	}
}

func TestHeldKeyGoesOnAfterADiscard(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p, letter, behind := behindADeadLetter(t, w)
		w.decide(discardIt, true)
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		require.Negative(t, w.position(letter))
		w.requireOrder(t, behind[0], behind[2])
		require.Zero(t, w.judge(t, func(*tableRow) bool { return true }))
	})
}

// A letter that dies again holds its key again: nothing follows it into Kafka.
func TestRetriedLetterThatDiesAgainHoldsItsKey(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p, letter, behind := behindADeadLetter(t, w)
		w.decide(retryAsItIs, true)
		until(t, "its next death", func() bool { return w.status(letter) == outbox.Dead })
		pause(t.Context(), 5*time.Second)
		require.Negative(t, w.position(behind[0]))
		w.decide(retryIt, true)
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		w.verdict(t)
	})
}

// Two dead letters of a key: what lies between goes once the first is decided about, what is behind the second waits
// on.
func TestKeyBetweenTwoDeadLetters(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p, first, between := behindADeadLetter(t, w)
		second := w.poison("t", "k")
		after := w.commitOne("t", "k")
		until(t, "the second death", func() bool { return w.status(second) == outbox.Dead })
		w.decideOne(retryIt, first)
		until(t, "what is between", func() bool { return w.position(between[2]) >= 0 })
		pause(t.Context(), 5*time.Second)
		require.Negative(t, w.position(after))
		require.Equal(t, 1, w.parked())
		w.decideOne(retryIt, second)
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		w.verdict(t)
	})
}

// A key that never rests is handed back too: the stream holds its messages for the last stretch.
func TestBusyKeyIsHandedBack(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p, _, _ := behindADeadLetter(t, w)
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
					w.commitOne("t", "k")
				}
			}
		}()
		pause(t.Context(), time.Second)
		w.decide(retryIt, true)
		until(t, "the end of waiting", func() bool {
			return w.parked() == 0 && p.relay.Status().HeldTotal == 0 && len(p.relay.Status().Topics) == 0
		})
		pause(t.Context(), 2*time.Second)
		require.Zero(t, w.parked(), "the stream sends it again")
		close(stop)
		<-done
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		require.Zero(t, w.verdict(t))
	})
}

// The process is killed with rows parked, and loses its checkpoint: what is held stays so, and goes on later.
func TestHeldKeySurvivesAKill(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]bool{"WithItsCheckpoint": true, "WithoutIt": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(1)
				p, letter, behind := behindADeadLetter(t, w)
				generation := w.crash()
				p.cancel()
				<-p.done //nolint:errcheck // a killed process may say anything
				if !keep {
					w.loseCheckpoint()
				}
				more := w.commitOne("t", "k")
				p = startWith(t, w, generation, holding())
				pause(t.Context(), 10*time.Second)
				require.Negative(t, w.position(behind[0]))
				require.Negative(t, w.position(more))
				w.decide(retryIt, true)
				w.settle(t, 2*time.Minute)
				require.NoError(t, p.stop())
				w.requireOrder(t, letter, behind[0])
				w.verdict(t)
				require.Empty(t, w.passed)
			})
		})
	}
}

// A person retries the letter by SQL while no relay runs: nothing in the table tells that it was one. It goes first
// all the same.
func TestLetterRetriedWhileNoRelayRuns(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]decision{"ByCommand": retryIt, "BySQL": retryBySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(1)
				p, _, _ := behindADeadLetter(t, w)
				require.NoError(t, p.stop())
				w.decide(what, true)
				p = startWith(t, w, 0, holding())
				w.settle(t, time.Minute)
				require.NoError(t, p.stop())
				w.verdict(t)
			})
		})
	}
}

// A retried letter whose next_retry_time a person has set to later is sent at once: its key would pass it otherwise.
func TestLetterRetriedForLater(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p, letter, _ := behindADeadLetter(t, w)
		w.decide(retryIt, true)
		w.mu.Lock()
		for _, r := range w.table {
			if r.row.MsgID == letter {
				r.next = time.Now().Add(time.Hour)
			}
		}
		w.mu.Unlock()
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		w.verdict(t)
	})
}

// The process is killed after the followers were parked and before the table was told of the dead letter. The next
// one finds parked rows and no dead letter: they wait until the stream has read that one again.
func TestKilledBetweenParkingAndTheDeath(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p := startWith(t, w, 0, holding())
		pause(t.Context(), time.Second)
		w.commitOne("t", "k")
		pause(t.Context(), time.Second)
		w.trouble.do(func(trouble *trouble) {
			trouble.fail = func(op operation, _ []outbox.Ref) error {
				if op == opDead {
					return store.ErrUnreachable
				}
				return nil
			}
		})
		letter := w.poison("t", "k")
		follower := w.commitOne("t", "k")
		pause(t.Context(), time.Second)
		w.parkNow("t", "k", follower)
		generation := w.crash()
		p.cancel()
		<-p.done //nolint:errcheck // a killed process may say anything
		w.trouble.do(func(trouble *trouble) {
			trouble.takes = map[operation]time.Duration{opDead: 3 * time.Second}
			trouble.fail = nil
		})
		p = startWith(t, w, generation, holding())
		pause(t.Context(), 20*time.Second)
		require.Equal(t, outbox.Dead, w.status(letter))
		require.Negative(t, w.position(follower), "it passed its dead letter")
		w.decide(retryIt, true)
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		w.verdict(t)
	})
}

// A message that spends its retries is a dead letter like any other.
func TestSpentRetriesHoldTheKey(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.setTopic("t", false, nil)
		p := startWith(t, w, 0, holding())
		pause(t.Context(), time.Second)
		letter, other := w.commitOne("t", "k"), w.commitOne("t", "other")
		follower := w.commitOne("t", "k")
		until(t, "its death", func() bool { return w.status(letter) == outbox.Dead })
		w.setTopic("t", true, nil)
		until(t, "the other key", func() bool { return w.position(other) >= 0 || w.status(other) == outbox.Dead })
		pause(t.Context(), 5*time.Second)
		require.Negative(t, w.position(follower))
		w.decide(retryIt, true)
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		w.verdict(t)
	})
}

// A relay that is told to release sends what one that held has parked.
func TestParkedRowsOfAnEarlierManner(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p, _, behind := behindADeadLetter(t, w)
		require.NoError(t, p.stop())
		p = startWith(t, w, 0, manner{}.config())
		until(t, "what was parked", func() bool { return w.position(behind[2]) >= 0 })
		require.Zero(t, w.parked())
		require.NoError(t, p.stop())
		w.requireOrder(t, behind[0], behind[1])
	})
}

// What the stream can't see is parked by the sweeper.
func TestRowsThatWereNeverLoggedAreHeld(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p, _, _ := behindADeadLetter(t, w)
		w.commit(false, "t", "k")
		w.commit(false, "t", "other")
		until(t, "its parking", func() bool { return w.parked() == 4 })
		w.decide(retryIt, true)
		w.settle(t, time.Minute)
		require.NoError(t, p.stop())
		w.verdict(t)
	})
}

func TestStatusNamesTheDeadLetterOfAHeldKey(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		p, letter, _ := behindADeadLetter(t, w)
		st := p.relay.Status()
		require.Equal(t, 1, st.HeldTotal)
		require.Equal(t, []relay.HeldKey{{Topic: "t", Table: "app.local_message", ID: 2, MsgID: letter}}, st.HeldKeys)
		w.decide(discardIt, true)
		until(t, "its end", func() bool { return p.relay.Status().HeldTotal == 0 })
		require.NoError(t, p.stop())
	})
}

// A table that can't keep the far time of a parked row is refused with what to do.
func TestHoldNeedsATableThatCanPark(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.cannotPark = store.ErrSchema
		p := startWith(t, w, 0, holding())
		pause(t.Context(), time.Second)
		require.Contains(t, p.relay.Status().Errors, store.ErrSchema.Error())
		p.cancel()
		require.NoError(t, <-p.done)
	})
}

// relaxedTopic has a backlog in a topic that does not exist yet.
func relaxedTopic(t *testing.T, w *world, cfg relay.Config) (p *process, backlog []string) {
	t.Helper()
	w.setTopic("t", false, nil)
	p = startWith(t, w, 0, cfg)
	pause(t.Context(), time.Second)
	for range 300 {
		backlog = append(backlog, w.commitOne("t", "k"))
	}
	pause(t.Context(), 500*time.Millisecond)
	w.trouble.do(func(trouble *trouble) { // a slow table: draining takes long
		trouble.takes = map[operation]time.Duration{opClaim: time.Second, opClaimEarly: time.Second}
	})
	return p, backlog
}

// With order: relaxed a topic that has appeared takes new messages at once, however much waits in the table; with
// strict they wait behind that.
func TestRelaxedLetsNewMessagesPassTheBacklog(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]manner{"Relaxed": {relaxed: true}, "Strict": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(1)
				p, backlog := relaxedTopic(t, w, m.config())
				w.setTopic("t", true, nil)
				until(t, "the probe's ack", func() bool { return w.position(backlog[0]) >= 0 })
				pause(t.Context(), 2*time.Second)
				fresh := w.commitOne("t", "k")
				pause(t.Context(), time.Second)
				require.Equal(t, m.relaxed, w.position(fresh) >= 0)
				w.settle(t, 10*time.Minute)
				require.NoError(t, p.stop())
				require.Zero(t, w.judge(t, m.ordered))
				if m.relaxed {
					require.Less(t, w.position(fresh), w.position(backlog[299]))
				}
			})
		})
	}
}

// With order: relaxed a restart does not make new messages wait for those in the table either.
func TestRelaxedRestartLetsNewMessagesGo(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(1)
		cfg := manner{relaxed: true}.config()
		p, backlog := relaxedTopic(t, w, cfg)
		require.NoError(t, p.stop())
		w.setTopic("t", true, nil)
		p = startWith(t, w, 0, cfg)
		fresh := w.commitOne("t", "k")
		pause(t.Context(), 1500*time.Millisecond)
		require.GreaterOrEqual(t, w.position(fresh), 0)
		w.settle(t, 10*time.Minute)
		require.NoError(t, p.stop())
		require.Less(t, w.position(fresh), w.position(backlog[299]))
		require.Zero(t, w.judge(t, func(*tableRow) bool { return false }))
	})
}

// decideOne is decide about one message.
func (w *world) decideOne(what decision, msgID string) {
	w.mu.Lock()
	var others []*tableRow
	for _, r := range w.table {
		if r.status == outbox.Dead && r.row.MsgID != msgID {
			r.status = outbox.Foreign // out of the way
			others = append(others, r)
		}
	}
	w.mu.Unlock()
	w.decide(what, true)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range others {
		r.status = outbox.Dead
	}
}

// parkNow writes what a parking UPDATE of a process that died right after it has written.
func (w *world) parkNow(topic, key, msgID string) {
	h := &hands{world: w, generation: w.generation}
	w.mu.Lock()
	var ref outbox.Ref
	for _, r := range w.table {
		if r.row.MsgID == msgID {
			ref = r.row.Ref()
		}
	}
	w.mu.Unlock()
	_ = h.Park(context.Background(), []store.Parking{{Ref: ref, Slot: store.SlotOf(topic, []byte(key))}})
}
