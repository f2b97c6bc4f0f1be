package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"example.com/outbox-relay/internal/oracle"
)

// generator makes up one writer's messages, the same ones for the same seed.
type generator struct {
	cfg    *Config
	writer int
	rnd    *rand.Rand
	made   int
	// generation changes the writer's keys after an outcome that it could not learn.
	generation int
}

// draft is a message with what goes into its row.
type draft struct {
	oracle.Message
	content, headers, trace string
	key                     string // the key column's value, "" for NULL
	staged                  bool
}

// texts are what JSON in the wild holds: several scripts, an emoji beyond the BMP, quotes, line breaks, markup.
var texts = []string{
	"paid", "订单已支付，等待发货", "ありがとう", "naïve café", "привет", "😀👩‍👩‍👧", `say "hi" \ bye`, "a\nb\tc", "<b>&amp;</b>", "' OR 1=1 --",
}

// body is the content. Its order_id is the key of messages that have one.
type body struct {
	OrderID string  `json:"order_id"`
	Message string  `json:"message"`
	Amount  float64 `json:"amount"`
	Note    string  `json:"note"`
	Padding string  `json:"padding"`
}

// size draws the rows of a transaction.
func (g *generator) size() int { return g.cfg.MinTxn + g.rnd.IntN(g.cfg.MaxTxn-g.cfg.MinTxn+1) }

func (g *generator) chance(part float64) bool { return g.rnd.Float64() < part }

// next makes up a message. A delayed one's due time is counted in whole seconds from now, as a DATETIME stores it.
func (g *generator) next(now time.Time) (draft, error) {
	g.made++
	id := fmt.Sprintf("%s-%d-%d", g.cfg.Prefix, g.writer, g.made)
	key := fmt.Sprintf("%s-%d.%d-%d", cmp.Or(g.cfg.KeyPrefix, g.cfg.Prefix), g.writer, g.generation, g.rnd.IntN(max(1, g.cfg.Keys)))
	d := draft{Message: oracle.Message{
		MsgID: id, Table: g.cfg.Tables[(g.writer+g.rnd.IntN(len(g.cfg.Tables)))%len(g.cfg.Tables)],
		Topic: g.cfg.Topics[g.rnd.IntN(len(g.cfg.Topics))], Key: id,
	}}
	if g.chance(g.cfg.Delayed) {
		d.Due = now.Truncate(time.Second).Add(time.Duration(1+g.rnd.IntN(int(g.cfg.MaxDelay/time.Second))) * time.Second)
	}
	order := id
	if g.cfg.Key != NoKey && d.Due.IsZero() && !g.chance(g.cfg.Keyless) {
		d.Key, order, d.Table = key, key, g.cfg.Tables[home(key, len(g.cfg.Tables))]
		if g.cfg.Key == KeyColumn {
			d.key = key
		}
	}
	if err := g.content(&d, order); err != nil {
		return draft{}, err
	}
	d.staged = g.chance(g.cfg.Staged)
	if g.chance(g.cfg.Headers) {
		return d, g.headers(&d)
	}
	return d, nil
}

// home is the table where a key lives.
func home(key string, tables int) int {
	sum := 0
	for _, c := range []byte(key) {
		sum = sum*31 + int(c)
	}
	return (sum%tables + tables) % tables
}

// content makes up the body. Sizes are drawn evenly by their logarithm: mostly small, some large.
func (g *generator) content(d *draft, order string) error {
	low, high := math.Log(float64(g.cfg.MinBytes)), math.Log(float64(g.cfg.MaxBytes))
	want := int(math.Exp(low + g.rnd.Float64()*(high-low)))
	b := body{
		OrderID: order, Message: d.MsgID, Amount: float64(g.rnd.IntN(1_000_000)) / 100, Note: texts[g.rnd.IntN(len(texts))],
	}
	if missing := want - 100; missing > 0 {
		b.Padding = strings.Repeat("0123456789abcdef", missing/16+1)[:missing]
	}
	encoded, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("content of %s: %w", d.MsgID, err)
	}
	d.content, d.Content = string(encoded), oracle.HashOf(encoded)
	return nil
}

func (g *generator) headers(d *draft) error {
	headers := map[string]string{"tenant": fmt.Sprintf("t%d", g.rnd.IntN(10)), "note": texts[g.rnd.IntN(len(texts))]}
	encoded, err := json.Marshal(headers)
	if err != nil {
		return fmt.Errorf("headers of %s: %w", d.MsgID, err)
	}
	d.headers = string(encoded)
	d.trace = fmt.Sprintf("00-%016x%016x-%016x-01", g.rnd.Uint64(), g.rnd.Uint64(), g.rnd.Uint64())
	headers["traceparent"] = d.trace
	d.Headers = headers
	return nil
}
