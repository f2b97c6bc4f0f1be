package wire

import (
	"errors"
	"fmt"

	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// holdable refuses what can't be kept: behind which dead letter a message waits is told by its key, and that of a staged body can't
// be told from the table once the body is gone.
func holdable(c *config.Config, route *router.Router, tables []store.Table) error {
	if c.Router.AfterDead != "hold" || !route.KeyInContent() {
		return nil
	}
	for i := range tables {
		if tables[i].HasBodyRef {
			return fmt.Errorf("router.after_dead: hold needs keys from a column where bodies are staged (table %s has the column %s): set router.key to a column, or after_dead to release",
				&tables[i], c.Sources[0].Columns.BodyRef)
		}
	}
	return nil
}

// Check asks the packages that use the configuration whether they can: what only they know, and what can be known without
// a server.
func Check(c *config.Config) error {
	var errs []error
	for _, s := range c.Sources {
		for _, check := range []func() error{
			func() error { _, err := router.New(Router(c, s)); return err },
			func() error {
				cfg, err := Stream(c, s)
				return errors.Join(err, cfg.Validate())
			},
			func() error {
				cfg, err := Primary(c, s)
				return errors.Join(err, cfg.Validate())
			},
			func() error {
				cfg, err := Kafka(c, s.Name)
				return errors.Join(err, cfg.Validate())
			},
		} {
			if err := check(); err != nil {
				errs = append(errs, fmt.Errorf("source %s: %w", s.Name, err))
			}
		}
	}
	cfg, err := Redis(c)
	return errors.Join(append(errs, err, cfg.Validate())...)
}
