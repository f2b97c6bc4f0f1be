package lean_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/lean"
)

// recordings reads testdata.
func recordings(t testing.TB) map[string]recording {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.Greater(t, len(files), 10)
	list := map[string]recording{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var r recording
		require.NoError(t, json.Unmarshal(data, &r), file)
		list[filepath.Base(file)] = r
	}
	return list
}

// TestRecordings decodes what the servers wrote, and compares with what they said about it.
func TestRecordings(t *testing.T) {
	t.Parallel()
	for name, r := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var rows []string
			require.NoError(t, replay(r.Flavor, r.Events, r.Columns, func(d decoded) error {
				require.NoError(t, d.leanErr)
				require.NoError(t, d.stockErr)
				for _, row := range d.rows {
					rows = append(rows, row.String())
				}
				return d.agree(r.Columns)
			}))
			require.Equal(t, r.Rows, rows)
		})
	}
}

// TestOneColumnAtATime: a value does not depend on which others are wanted.
func TestOneColumnAtATime(t *testing.T) {
	t.Parallel()
	for name, r := range recordings(t) {
		var all []row
		require.NoError(t, replay(r.Flavor, r.Events, r.Columns, func(d decoded) error {
			all = append(all, d.rows...)
			return nil
		}))
		for n, column := range r.Columns {
			seen := 0
			require.NoError(t, replay(r.Flavor, r.Events, []lean.Column{column}, func(d decoded) error {
				for _, one := range d.rows {
					if one.after != nil {
						require.Equal(t, all[seen].after.lean[n], one.after.lean[0], "%s, column %d", name, column.Index)
					}
					seen++
				}
				return d.leanErr
			}))
			require.Len(t, all, seen)
		}
	}
}

// TestTruncatedEvents cuts the rows events everywhere. What is left is decoded or refused, and never more rows than
// there were.
func TestTruncatedEvents(t *testing.T) {
	t.Parallel()
	for name, r := range recordings(t) {
		parser := replication.NewBinlogParser()
		parser.SetFlavor(r.Flavor)
		var tp replication.EventType
		parser.SetRowsEventDecodeFunc(func(e *replication.RowsEvent, data []byte) error {
			pos, err := lean.Header(e, data)
			require.NoError(t, err, name)
			plan, err := lean.NewPlan(e.Table, r.Columns)
			require.NoError(t, err, name)
			count := func(data []byte) (rows int, err error) {
				data, begin, err := lean.Rows(tp, data, pos)
				if err == nil {
					err = plan.Decode(e, data, begin, func(_, _ lean.Image) error { rows++; return nil })
				}
				return rows, err
			}
			whole, err := count(data)
			require.NoError(t, err)
			for n := pos; n < len(data); n++ {
				rows, err := count(data[:n:n])
				require.Less(t, rows, whole, name)
				if err != nil {
					require.ErrorIs(t, err, lean.ErrMalformed)
				}
			}
			for n := range pos {
				_, err := lean.Header(e, data[:n:n])
				require.Error(t, err)
			}
			return nil
		})
		for _, event := range r.Events {
			tp = typeOf(event)
			_, err := parser.Parse(event)
			require.NoError(t, err)
		}
	}
}
