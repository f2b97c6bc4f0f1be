package gtid

import (
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
)

const sid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func TestMySQLSets(t *testing.T) {
	const b = "b0000000-0000-0000-0000-000000000000"
	set := mysqlSet{}
	require.NoError(t, set.Add(b+":1-3:5,\n"+sid+":7:tag:1-2"))
	require.Equal(t, sid+":7:tag:1-2,"+b+":1-3:5", set.String())
	require.NoError(t, set.Add(b+":4"))
	require.NoError(t, set.Add(b+":2"))
	require.NoError(t, set.Add(b+":9"))
	require.NoError(t, set.Add(b+":8"))
	require.Equal(t, sid+":7:tag:1-2,"+b+":1-5:8-9", set.String())
	require.Equal(t, set.String(), set.Native().String())
	require.Error(t, set.Add("nonsense"))

	contains := func(a, b string) bool {
		t.Helper()
		x, err := Parse(position.MySQL, a)
		require.NoError(t, err)
		y, err := Parse(position.MySQL, b)
		require.NoError(t, err)
		return x.Contains(y)
	}
	require.True(t, contains(b+":1-5", b+":2-3:5"))
	require.True(t, contains(b+":1-5", ""))
	require.False(t, contains(b+":1-5", b+":5-6"))
	require.False(t, contains(b+":1-5", b+":x:1"))
	require.False(t, contains("", b+":1"))
	require.False(t, mysqlSet{}.Contains(mariadbSet{}))
	_, err := Parse("oracle", "")
	require.Error(t, err)
}

func TestMariaDBSets(t *testing.T) {
	set := mariadbSet{}
	require.NoError(t, set.Add("0-1-100, 5-2-7"))
	require.NoError(t, set.Add("0-3-101"))
	require.Equal(t, "0-3-101,5-2-7", set.String())
	require.Equal(t, "0-3-101,5-2-7", set.Native().String())
	require.Error(t, set.Add("0-1"))
	other := mariadbSet{}
	require.NoError(t, other.Add("0-9-101"))
	require.True(t, set.Contains(other))
	require.False(t, other.Contains(set))
	require.False(t, mariadbSet{}.Contains(mysqlSet{}))
	require.True(t, mariadbSet{}.Empty())
}

func TestOneTransaction(t *testing.T) {
	sets := map[string]Set{}
	for _, flavor := range []string{position.MySQL, position.MariaDB} {
		set, err := Parse(flavor, "")
		require.NoError(t, err)
		for range 2 {
			set.AddOne(MySQL(uuid.MustParse(sid), "tag", 5))
			set.AddOne(MariaDB(gomysql.MariadbGTID{DomainID: 1, ServerID: 2, SequenceNumber: 3}))
			set.AddOne(ID{})
		}
		sets[flavor] = set
	}
	require.Equal(t, sid+":tag:5", sets[position.MySQL].String())
	require.Equal(t, "1-2-3", sets[position.MariaDB].String())
	require.True(t, Precedes(sets[position.MariaDB], "1-9-4"))
	require.False(t, Precedes(sets[position.MariaDB], "1-9-5"))
	require.False(t, Precedes(sets[position.MariaDB], "nonsense"))
	require.False(t, Precedes(sets[position.MySQL], "1-9-4"))
	sets[position.MySQL].Clear()
	sets[position.MariaDB].Clear()
	require.True(t, sets[position.MySQL].Empty())
	require.True(t, sets[position.MariaDB].Empty())
}
