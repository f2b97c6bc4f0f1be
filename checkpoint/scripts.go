package checkpoint

import (
	"context"
	_ "embed" // the scripts
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/common.lua
	commonLua string
	//go:embed lua/epoch.lua
	epochLua string
	//go:embed lua/save.lua
	saveLua string
	//go:embed lua/change.lua
	changeLua string
	//go:embed lua/undo.lua
	undoLua string
	//go:embed lua/acquire.lua
	acquireLua string
	//go:embed lua/extend.lua
	extendLua string
	//go:embed lua/release.lua
	releaseLua string
)

// scripts are what must happen in Redis at one stroke. They are run by digest and sent again when Redis forgot them.
type scripts struct {
	epoch, save, change, undo, acquire, extend, release *redis.Script
}

func newScripts() scripts {
	return scripts{
		epoch:   redis.NewScript(commonLua + epochLua),
		save:    redis.NewScript(commonLua + saveLua),
		change:  redis.NewScript(commonLua + changeLua),
		undo:    redis.NewScript(commonLua + undoLua),
		acquire: redis.NewScript(acquireLua),
		extend:  redis.NewScript(extendLua),
		release: redis.NewScript(releaseLua),
	}
}

// What the scripts of the record answer first.
const (
	verdictNewer   = "newer"
	verdictFenced  = "fenced"
	verdictNothing = "nothing"
)

// reply is a script's answer: a verdict and, with most, a detail.
type reply struct{ verdict, detail string }

// run runs a script on the record of a source, within the store's time limit.
func (s *Store) run(ctx context.Context, what, source string, script *redis.Script, args ...any) (reply, error) {
	k, err := s.keys(source)
	if err != nil {
		return reply{}, err
	}
	what += " of " + source
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	answer, err := script.Run(ctx, s.client, []string{k.checkpoint, k.epoch, k.history}, args...).StringSlice()
	if err != nil {
		return reply{}, s.wrap(what, err)
	}
	switch len(answer) {
	case 0:
		return reply{}, fmt.Errorf("%s: the script answered nothing", what)
	case 1:
		return reply{verdict: answer[0]}, nil
	default:
		return reply{verdict: answer[0], detail: answer[1]}, nil
	}
}
