package store

import (
	"database/sql"

	"github.com/rs/zerolog"
)

// OpenService returns a pool of sessions as a service has them, which writes messages and business rows on the server of
// the configuration: nothing of what the relay sets in its own sessions is set. The demo writes through it.
func OpenService(cfg Config, size int, log zerolog.Logger) (*sql.DB, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c, err := newConnector(cfg.withDefaults(), quickReadTimeout, false, log)
	if err != nil {
		return nil, err
	}
	c.setup = nil
	return newPool(c, size).db, nil
}
