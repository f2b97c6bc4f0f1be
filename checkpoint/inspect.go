package checkpoint

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"example.com/outbox-relay/internal/diagnose"
)

// The checks of Inspect, as doctor prints them.
const (
	CheckReachable   = "redis reachable"
	CheckRights      = "redis rights"
	CheckVersion     = "redis version"
	CheckRole        = "redis role"
	CheckEviction    = "redis eviction"
	CheckPersistence = "redis persistence"
)

// Inspect looks at what the relay needs of Redis, on each primary of a cluster. It writes nothing. The error is that of a ctx
// which ended; everything else is a finding.
func (s *Store) Inspect(ctx context.Context) (diagnose.Report, error) {
	bounded, cancel := context.WithTimeout(ctx, 2*s.cfg.Timeout)
	defer cancel()
	report := s.inspect(bounded)
	return report, ctx.Err()
}

func (s *Store) inspect(ctx context.Context) diagnose.Report {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.inspectNode(ctx, s.client, "redis")
	}
	var mu sync.Mutex
	var report diagnose.Report
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		found := s.inspectNode(ctx, node, "redis "+node.Options().Addr)
		mu.Lock()
		defer mu.Unlock()
		report.Merge(found)
		return nil
	})
	if err != nil {
		report.Fail(CheckReachable, s.wrap("look for the cluster's nodes", err).Error(), "redis-cli CLUSTER INFO")
	}
	return report
}

// inspectNode looks at one server. The checks go on only while there is something to ask.
func (s *Store) inspectNode(ctx context.Context, node redis.Cmdable, name string) diagnose.Report {
	var report diagnose.Report
	// A server that can't persist refuses even PING; the check of persistence tells.
	if err := node.Ping(ctx).Err(); err != nil && CodeOf(err) != CodeMisconf {
		report.Fail(CheckReachable, s.wrap("ask "+name, err).Error(),
			"redis-cli -u URL PING must answer PONG; correct redis.url in the configuration")
		return report
	}
	report.OK(CheckReachable, name+" answers")
	if err := node.Eval(ctx, "return 1", nil).Err(); err != nil {
		report.Fail(CheckRights, s.wrap("run a script on "+name, err).Error(), s.grant())
	} else {
		report.OK(CheckRights, name+" runs scripts")
	}
	info, err := node.InfoMap(ctx).Result()
	if err != nil {
		report.Warn(CheckVersion, s.wrap("ask "+name+" for INFO", err).Error()+
			": version, role and persistence are unknown", s.grant())
		info = map[string]map[string]string{}
	}
	inspectServer(&report, info, name)
	s.inspectEviction(ctx, &report, node, name)
	s.inspectPersistence(ctx, &report, node, info, name)
	return report
}

// grant is the ACL rule that the relay and doctor need.
func (s *Store) grant() string {
	user := s.target.user
	if user == "" {
		user = "default"
	}
	return fmt.Sprintf("ACL SETUSER %s ~%s* +@read +@write +@scripting +ping +info +config|get", user, s.cfg.Prefix)
}

func inspectServer(report *diagnose.Report, info map[string]map[string]string, name string) {
	if version := info["Server"]["redis_version"]; version != "" {
		major, _, _ := strings.Cut(version, ".")
		if n, err := strconv.Atoi(major); err == nil && n < 5 {
			report.Fail(CheckVersion, fmt.Sprintf("%s is version %s, which has no streams: the history needs 5.0 or newer", name, version),
				"upgrade redis to a version that is still maintained")
		} else {
			report.OK(CheckVersion, name+" is version "+version)
		}
	}
	switch role := info["Replication"]["role"]; role {
	case "":
	case "slave":
		report.Fail(CheckRole, name+" is a replica: it refuses to save checkpoints",
			"put the address of the primary into redis.url, or use redis+sentinel://")
	default:
		report.OK(CheckRole, name+" is a primary")
	}
}

func (s *Store) inspectEviction(ctx context.Context, report *diagnose.Report, node redis.Cmdable, name string) {
	policy, err := configValue(ctx, node, "maxmemory-policy")
	if err != nil {
		report.Warn(CheckEviction, s.wrap("ask "+name+" for its maxmemory-policy", err).Error()+": it is unknown whether redis may evict the checkpoint",
			"redis-cli CONFIG GET maxmemory-policy must say noeviction or volatile-*")
		return
	}
	// The record has no time to live, so what evicts only such keys leaves it alone.
	if strings.HasPrefix(policy, "allkeys-") {
		report.Warn(CheckEviction, fmt.Sprintf("%s has maxmemory-policy %s: when memory is short it may evict the checkpoint; "+
			"the relay then sweeps the whole table instead of going on where it was", name, policy),
			"CONFIG SET maxmemory-policy noeviction")
		return
	}
	report.OK(CheckEviction, fmt.Sprintf("%s has maxmemory-policy %s", name, policy))
}

func (s *Store) inspectPersistence(ctx context.Context, report *diagnose.Report, node redis.Cmdable, info map[string]map[string]string, name string) {
	state := info["Persistence"]
	if state["rdb_last_bgsave_status"] == "err" || state["aof_last_write_status"] == "err" {
		report.Fail(CheckPersistence, name+" could not write its last snapshot or append-only file: it refuses to save checkpoints (MISCONF)",
			"look at redis's log and at the space and rights of its dir; then BGSAVE")
		return
	}
	save, err := configValue(ctx, node, "save")
	if err != nil {
		report.Warn(CheckPersistence, s.wrap("ask "+name+" for its persistence", err).Error()+": it is unknown whether redis keeps the checkpoint over a restart",
			"redis-cli CONFIG GET save appendonly must show a snapshot rule or yes")
		return
	}
	appendOnly, err := configValue(ctx, node, "appendonly")
	if err != nil {
		appendOnly = "no"
	}
	switch {
	case appendOnly == "yes":
		report.OK(CheckPersistence, name+" keeps an append-only file")
	case save != "":
		report.OK(CheckPersistence, name+" takes snapshots; after a crash the checkpoint may be some minutes old, and what lies between is looked up again")
	default:
		report.Warn(CheckPersistence, name+" persists nothing: after its restart the checkpoint is gone and the relay sweeps the whole table",
			"CONFIG SET appendonly yes, then CONFIG REWRITE")
	}
}

func configValue(ctx context.Context, node redis.Cmdable, name string) (string, error) {
	values, err := node.ConfigGet(ctx, name).Result()
	if err != nil {
		return "", err
	}
	return values[name], nil
}
