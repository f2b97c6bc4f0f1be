package order_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/order"
	"example.com/outbox-relay/outbox"
)

// rewrite lets the scripts say what the machine does now. Read the difference before it is kept.
var rewrite = flag.Bool("order.rewrite", false, "write what the scripts print into their files")

// TestScripts plays the scripts in testdata. A script is a list of blocks, each of which is some events, a line of
// dashes, and what comes out: what is to be done, and where the line stands then.
//
// Messages are numbers, which are also their rows' ids. A script has one topic, and one key, whose messages are
// written with a k before them; "k" before an event is that event of the key's line. A # begins a comment.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := play(t, string(text))
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}

const dashes = "----"

// play returns the script with what comes out of its events now.
func play(t *testing.T, text string) string {
	t.Helper()
	s := newScript(strings.Contains(text, "# relaxed\n"), !strings.Contains(text, "# release\n"))
	var out strings.Builder
	printing := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == dashes:
			out.WriteString(dashes + "\n" + s.end())
			printing = true
		case line == "":
			printing = false
			out.WriteString("\n")
		case printing: // what came out when the script was written
		default:
			out.WriteString(line + "\n")
			if words := strings.Fields(line); words[0] != "#" {
				s.event(t, words)
			}
		}
	}
	return out.String()
}

// message is a message of the topic, or one of the key.
type message struct {
	id   uint64
	line order.Name
}

func (m message) Ref() outbox.Ref  { return refOf(m.id) }
func (m message) Line() order.Name { return m.line }

func refOf(id uint64) outbox.Ref {
	return outbox.Ref{Table: outbox.Table{Database: "app", Name: "local_message"}, ID: id, MsgID: fmt.Sprintf("m%d", id)}
}

const theKey = 7

var scriptStart = time.Unix(1e9, 0)

type script struct {
	lines *order.Lines[message]
	topic *order.Line[message]
	now   time.Time
	out   strings.Builder
}

func newScript(relaxed, hold bool) *script {
	s := &script{lines: order.NewLines[message](order.Config{Relaxed: relaxed, Hold: hold}), now: scriptStart}
	s.topic = s.lines.Topic("orders")
	return s
}

func (s *script) print(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// end returns what has come out, and where the lines stand.
func (s *script) end() string {
	state := func(l *order.Line[message]) string {
		text := l.State().String()
		if l.Reason() != "" {
			text += " (" + l.Reason() + ")"
		}
		if held := l.Holding(); len(held) > 0 {
			text += ", holds" + list(held)
		}
		if l.Away() > 0 {
			text += fmt.Sprintf(", %d away", l.Away())
		}
		return text
	}
	s.print("topic is %s", state(s.topic))
	if key := s.lines.Find(order.Name{Key: theKey}); key != nil {
		s.print("key is %s", state(key))
	}
	text := s.out.String()
	s.out.Reset()
	return text
}

func list(messages []message) string {
	text := ""
	for _, m := range messages {
		text += " " + nameOf(m)
	}
	return text
}

func nameOf(m message) string {
	if m.line.Key != 0 {
		return fmt.Sprintf("k%d", m.id)
	}
	return strconv.FormatUint(m.id, 10)
}

func messageOf(t *testing.T, word string) message {
	t.Helper()
	m := message{line: order.Name{Topic: "orders"}}
	digits, keyed := strings.CutPrefix(word, "k")
	if keyed {
		m.line.Key = theKey
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	require.NoError(t, err, word)
	m.id = id
	return m
}

func (s *script) do(do order.Actions[message]) {
	for _, m := range do.Probe {
		s.print("probe %s", nameOf(m))
	}
	if len(do.Defer) > 0 {
		s.print("defer%s", list(do.Defer))
	}
	if do.Flush != 0 {
		s.print("flush")
	}
	if do.Closed {
		s.print("closed")
	}
	if do.Notify {
		s.print("notify the sweeper")
	}
}

// event plays one line of a script.
func (s *script) event(t *testing.T, words []string) {
	t.Helper()
	line := s.topic
	if words[0] == "k" {
		words = words[1:]
		line = s.lines.Find(order.Name{Key: theKey})
		require.NotNil(t, line, "the key has no line")
	}
	name, args := words[0], words[1:]
	for _, play := range []func(*testing.T, *order.Line[message], string, []string) bool{s.stream, s.sweep, s.person} {
		if play(t, line, name, args) {
			return
		}
	}
	require.Fail(t, "no such event", "%v", words)
}

// stream plays what the stream, its prober and its marker report.
func (s *script) stream(t *testing.T, l *order.Line[message], name string, args []string) bool {
	t.Helper()
	switch name {
	case "admit":
		for _, arg := range args {
			m := messageOf(t, arg)
			s.print("%s: %s", arg, [...]string{"send", "probe", "held", "defer", "park"}[s.lines.Admit(m, l)])
		}
	case "acked":
		s.do(l.ProbeAcked())
	case "dead":
		s.do(l.ProbeDead())
	case "refused":
		s.do(l.Report(order.Outcome{Kind: order.Closes, Reason: strings.Join(args, " ")}, s.now))
	case "refused-probe":
		s.do(l.CloseWith(messageOf(t, args[0]), strings.Join(args[1:], " "), s.now))
	case "bodyless":
		s.do(l.CloseBehind(messageOf(t, args[0]), "its body is missing", s.now))
	case "answered":
		l.Reached(true)
	case "away":
		l.Reached(false)
	case "slow":
		s.do(l.ProbeSlow())
	case "deferred":
		for range s.count(t, args) {
			l.Deferred()
		}
	case "failing":
		l.Failing()
	case "failed":
		l.Failed()
	case "flush":
		s.flush(t, l, args)
	default:
		return false
	}
	return true
}

func (s *script) count(t *testing.T, args []string) int {
	t.Helper()
	if len(args) == 0 {
		return 1
	}
	n, err := strconv.Atoi(args[0])
	require.NoError(t, err)
	return n
}

// flush sends what is held. "closing N" closes the line when N is sent, "dies N" is the death of that one.
func (s *script) flush(t *testing.T, l *order.Line[message], args []string) {
	t.Helper()
	turn := l.Turn()
	for {
		batch, opened := l.Take(turn)
		if opened {
			s.print("opened")
		}
		if len(batch) == 0 {
			return
		}
		for _, m := range batch {
			if !l.Flushes(turn) {
				s.print("defer %s", nameOf(m))
				continue
			}
			s.print("send %s", nameOf(m))
			if len(args) == 2 && args[1] == nameOf(m) {
				if args[0] == "closing" {
					s.do(l.Close("refused", s.now))
				} else {
					_, do := s.lines.Died(m.Ref(), m.Line())
					s.do(do)
				}
			}
		}
	}
}

// sweep plays what the sweeper reports and asks.
func (s *script) sweep(t *testing.T, l *order.Line[message], name string, args []string) bool {
	t.Helper()
	switch name {
	case "begin":
		s.print("%s", [...]string{"send", "probe", "held", "leave it", "park"}[l.Begin()])
	case "drain":
		kind := order.Empty
		if args[0] == "acked" {
			kind = order.Drains
		}
		s.do(l.Report(order.Outcome{Kind: kind}, s.now))
	case "hold":
		if _, ok := l.Hold(s.now); !ok {
			s.print("too early")
		}
	case "unhold":
		s.do(l.Report(order.Outcome{Kind: order.GivesUp}, s.now))
	case "unhold-earlier":
		s.do(l.Unhold(l.Turn() - 1))
	case "handback":
		do, ok := l.Open()
		s.do(do)
		if !ok {
			s.print("the drain goes on")
		}
	case "later":
		s.do(l.Report(order.Outcome{Kind: order.Later, Wait: s.duration(t, args[0])}, s.now))
	case "rebuild":
		l.Rebuild(s.now.Add(s.duration(t, args[0])))
	case "recorded":
		s.lines.Recorded()
	case "opened": // the sweeper's lone message to the topic was acked
		do, ok := s.lines.At(l.Name()).Open()
		s.do(do)
		s.print("opens: %t", ok)
	case "after":
		s.now = s.now.Add(s.duration(t, args[0]))
	case "work":
		w := s.lines.Work(s.now)
		s.print("probe %v, drain %v, release %d, wait %s, general sweeps leave out %v", w.Probe, w.Drain, len(w.Release), w.Wait, s.lines.Leaves())
	case "blocked":
		s.do(l.Report(order.Outcome{Kind: order.Blocked}, s.now))
	default:
		return false
	}
	return true
}

func (s *script) duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// person plays deaths and what persons decide.
func (s *script) person(t *testing.T, _ *order.Line[message], name string, args []string) bool {
	t.Helper()
	if len(args) == 0 {
		return false
	}
	m := messageOf(t, args[0])
	switch name {
	case "died":
		_, do := s.lines.Died(m.Ref(), m.Line())
		s.do(do)
	case "buried":
		s.lines.Buried(m.Ref(), true)
	case "not-buried":
		s.lines.Buried(m.Ref(), false)
	case "retried":
		s.lines.Decided(m.Ref(), true)
	case "discarded":
		s.lines.Decided(m.Ref(), false)
	case "due":
		s.print("%s waits: %t", args[0], s.lines.Waits(m.Ref(), m.Line()))
	case "turn":
		s.print("%s %s", args[0], [...]string{"goes", "goes alone", "is behind a dead letter"}[s.lines.TurnOf(theKey, m.Ref())])
	case "was-acked":
		s.print("%s has passed %q", args[0], s.lines.Overtook(m))
	case "was-refused":
		s.topic.Refused([]byte("k"), m.Ref().MsgID)
	case "passes":
		s.print("%s has passed %q", args[0], s.topic.Passed([]byte("k")))
	default:
		return false
	}
	return true
}
