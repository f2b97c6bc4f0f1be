//go:build !unit

package rig_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/test/rig"
)

func TestReplicaFollowsAndCatchesUpAfterAnOutage(t *testing.T) {
	onBoth(t, func(t *testing.T, get func(testing.TB, ...rig.Option) *rig.Server) {
		source := get(t, rig.Own())
		db := source.DB(t)
		exec(t, db, "CREATE DATABASE d; CREATE TABLE d.a (id INT PRIMARY KEY)")
		exec(t, db, "INSERT INTO d.a VALUES (1)")

		replica := source.Replica(t)
		copied := replica.DB(t)
		assert.Equal(t, "1", query(t, copied, "SELECT COUNT(*) FROM d.a"))
		assert.Equal(t, "1", query(t, copied, "SELECT @@GLOBAL.read_only"))
		assert.NotEqual(t, query(t, db, "SELECT @@GLOBAL.server_id"), query(t, copied, "SELECT @@GLOBAL.server_id"))
		if source.Flavor == rig.FlavorMySQL {
			assert.NotEqual(t, query(t, db, "SELECT @@server_uuid"), query(t, copied, "SELECT @@server_uuid"))
		}

		replica.Stop(t)
		exec(t, db, "INSERT INTO d.a VALUES (2)")
		replica.Start(t)
		exec(t, db, "INSERT INTO d.a VALUES (3)")
		replica.CatchUp(t, source)
		assert.Equal(t, "3", query(t, copied, "SELECT COUNT(*) FROM d.a"))

		// The old source comes back as the new one's replica.
		exec(t, copied, "SET GLOBAL read_only = 0")
		exec(t, copied, "INSERT INTO d.a VALUES (4)")
		source.Follow(t, replica)
		source.CatchUp(t, replica)
		assert.Equal(t, "4", query(t, db, "SELECT COUNT(*) FROM d.a"))
	})
}
