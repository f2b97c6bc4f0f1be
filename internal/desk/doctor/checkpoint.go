package doctor

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/relay"
)

// inspectCheckpoint returns what run would make of the saved position. A Redis or a server that can't be asked has findings
// of its own already.
func inspectCheckpoint(
	ctx context.Context, c *config.Config, s config.Source, log zerolog.Logger,
) (report diagnose.Report, err error) {
	if s.Mode == string(relay.Sweep) {
		return report, nil
	}
	cfg, err := wire.Redis(c)
	if err != nil {
		return report, err
	}
	checkpoints, err := checkpoint.Open(cfg, log)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, checkpoints.Close()) }()
	rec, err := checkpoints.Load(ctx, s.Name)
	switch {
	case errors.Is(err, checkpoint.ErrNewer):
		report.Fail("checkpoint", err.Error(), "upgrade this relay, or run the newer one")
	case errors.Is(err, checkpoint.ErrBroken):
		report.Warn("checkpoint", err.Error()+": run will begin at the binlog's present end and sweep everything pending",
			"outbox-relay checkpoint undo, or let run do that")
	case err == nil:
		judgeCheckpoint(ctx, &report, c, s, rec)
	}
	return report, nil
}

func judgeCheckpoint(ctx context.Context, report *diagnose.Report, c *config.Config, s config.Source, rec checkpoint.Record) {
	stream, err := wire.Stream(c, s)
	if err != nil {
		return
	}
	d, err := canal.BinlogDistance(ctx, stream, rec.Position)
	switch {
	case err != nil:
	case d.Usable:
		report.OK("checkpoint", "the stream can go on from "+rec.Position.String())
	default:
		report.Warn("checkpoint", "the stream can't go on from "+rec.Position.String()+" ("+d.Recovery+"): "+d.Detail+
			"; run will begin at the binlog's present end and sweep everything pending",
			"nothing is lost as long as the table has the rows; look at checkpoint show and history if this is a surprise")
	}
}
