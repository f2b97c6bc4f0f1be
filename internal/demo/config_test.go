package demo_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
)

func config(t *testing.T, routing router.Config) demo.Config {
	t.Helper()
	if routing.MaxMessageBytes == 0 {
		routing.MaxMessageBytes = 1 << 20
	}
	made, err := router.New(routing)
	require.NoError(t, err)
	return demo.Config{
		Transactions: 20, Writers: 2, Topics: demo.Topics(), Table: outbox.Table{Database: "app", Name: "local_message"},
		Source: "default", Router: made, Patience: time.Second,
	}
}

func TestValidateNamesEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	wrong := demo.Config{Rate: -1}
	err := wrong.Validate()
	for _, field := range []string{"transactions: 0", "writers: 0", "rate: -1", "topics:", "patience: 0s"} {
		require.ErrorContains(t, err, field)
	}
	right := config(t, router.Config{Source: "default"})
	require.NoError(t, right.Validate())
}

// What the demo can't foresee it must refuse before it writes anything: there is no database here.
func TestRunRefusesRoutesThatItCannotForesee(t *testing.T) {
	t.Parallel()
	for name, routing := range map[string]router.Config{
		"OtherTopic": {Routes: []router.Route{{Match: "demo-stock", Topic: "elsewhere"}}},
		"OtherKey":   {Key: "/message"},
		"MixedKeys":  {Routes: []router.Route{{Match: "demo-stock", Key: "/order_id"}}},
		"NotAllowed": {Allow: []string{"orders"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routing.Source = "default"
			cfg := config(t, routing)
			_, err := demo.Run(t.Context(), cfg, func(demo.Progress) {})
			require.ErrorIs(t, err, demo.ErrUnforeseen)
			assert.ErrorContains(t, err, "with --topics")
		})
	}
}
