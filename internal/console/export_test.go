package console

// Addr returns where the console listens, "" when it does not.
func (c *Console) Addr() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.address
}
