package mysql

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestServers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		version, comment, fold        string
		mariaDB, skipLocked, foldName bool
		visible, monitor, session     string
	}{
		{"9.7.4", "", "0", false, true, false, "IS_VISIBLE", "REPLICATION CLIENT", "SESSION_VARIABLES_ADMIN"},
		{"8.0.36-28.1", "Percona Server (GPL)", "1", false, true, true, "IS_VISIBLE", "REPLICATION CLIENT", "SESSION_VARIABLES_ADMIN"},
		{"5.7.44-log", "", "", false, false, false, "'YES'", "REPLICATION CLIENT", "SESSION_VARIABLES_ADMIN"},
		{"10.11.19-MariaDB-deb12-log", "", "2", true, true, true, "IF(IGNORED='YES','NO','YES')", "BINLOG MONITOR", "BINLOG ADMIN"},
		{"10.11.19-log", "MariaDB Server", "0", true, true, false, "IF(IGNORED='YES','NO','YES')", "BINLOG MONITOR", "BINLOG ADMIN"},
		{"10.5.23-MariaDB", "", "0", true, false, false, "'YES'", "BINLOG MONITOR", "BINLOG ADMIN"},
		{"10.4.1-MariaDB", "", "0", true, false, false, "'YES'", "REPLICATION CLIENT", "BINLOG ADMIN"},
		{"11.4.2-MariaDB-ubu2404", "", "0", true, true, false, "IF(IGNORED='YES','NO','YES')", "BINLOG MONITOR", "BINLOG ADMIN"},
		{"99999999999999999999.1.1-xx", "", "0", false, false, false, "'YES'", "REPLICATION CLIENT", "SESSION_VARIABLES_ADMIN"},
		{"nine", "", "0", false, false, false, "'YES'", "REPLICATION CLIENT", "SESSION_VARIABLES_ADMIN"},
	} {
		s := NewServer(tc.version, tc.comment, tc.fold)
		assert.Equal(t, tc.version, s.Version)
		assert.Equal(t, tc.mariaDB, s.MariaDB, tc.version)
		assert.Equal(t, tc.skipLocked, s.CanSkipLocked(), tc.version)
		assert.Equal(t, tc.skipLocked, s.HasJSONTable(), tc.version)
		assert.Equal(t, tc.foldName, s.FoldNames, tc.version)
		assert.Equal(t, tc.visible, s.indexVisible(), tc.version)
		assert.Equal(t, tc.monitor, s.MonitorPrivilege(), tc.version)
		assert.Equal(t, tc.session, s.SetSessionPrivilege(), tc.version)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		version             string
		major, minor, patch int
		want                bool
	}{
		{"8.0.36-0ubuntu", 8, 0, 36, true},
		{"8.0.36-0ubuntu", 8, 0, 37, false},
		{"8.0.36", 7, 9, 99, true},
		{"10.11.19-MariaDB-log", 10, 11, 19, true},
		{"10.11.19-MariaDB-log", 11, 0, 0, false},
		{"9.7.4-2", 9, 7, 4, true},
		{"9", 9, 0, 0, true},
		{"9", 9, 0, 1, false},
		{"nine", 0, 0, 1, false},
	} {
		assert.Equal(t, tc.want, NewServer(tc.version, "", "0").AtLeast(tc.major, tc.minor, tc.patch), "%+v", tc)
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "'re''lay'@'%'", Account("re'lay"))
	assert.Equal(t, "'a@b'@'10.%'", accountOf("a@b@10.%"))
	assert.Equal(t, "'a'@'%'", accountOf("a"))
	assert.Equal(t, "a@b", UserOf("a@b@10.%"))
	assert.Equal(t, "a", UserOf("a"))
	assert.Equal(t, "GRANT BINLOG MONITOR ON *.* TO 'a'@'%';", GrantGlobal("BINLOG MONITOR", Account("a")))
}
