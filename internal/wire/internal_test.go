package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// A dead letter whose body is gone has no content to find its key in.
func TestHoldNeedsKeysFromAColumnWhereBodiesAreStaged(t *testing.T) {
	t.Parallel()
	tables := []store.Table{{Table: outbox.Table{Database: "app", Name: "plain"}}, {Table: outbox.Table{Database: "app", Name: "staged"}, HasBodyRef: true}}
	for _, tt := range []struct {
		afterDead, key, routed string
		tables                 []store.Table
		refused                bool
	}{
		{"hold", "/order_id", "", tables, true},
		{"hold", "", "/order_id", tables, true},
		{"hold", "/order_id", "", tables[:1], false},
		{"hold", "", "", tables, false},
		{"release", "/order_id", "", tables, false},
	} {
		c := config.Defaults()
		c.Router.AfterDead, c.Router.Key = tt.afterDead, tt.key
		c.Router.Routes = []config.Route{{Match: "a*", Key: tt.routed}}
		route, err := router.New(Router(c, c.Sources[0]))
		require.NoError(t, err)
		err = holdable(c, route, tt.tables)
		if tt.refused {
			require.ErrorContains(t, err, "table app.staged has the column body_ref")
		} else {
			assert.NoError(t, err)
		}
	}
}
