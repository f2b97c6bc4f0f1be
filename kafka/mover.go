package kafka

// mover is the goroutine that hands over what had to wait.
type mover struct {
	kick  chan struct{} // wakes it
	ended chan struct{} // closed when it has ended
}

// move hands over the records that had to wait until sarama holds fewer of their topic. It runs from NewProducer to
// Close.
func (p *Producer) move() {
	defer close(p.mover.ended)
	for {
		select {
		case <-p.mover.kick:
			for p.moveSome() {
			}
		case <-p.stop:
			// What waits is still handed over, while Close waits for it.
			p.moveRest()
			return
		}
	}
}

func (p *Producer) moveRest() {
	for {
		for p.moveSome() {
		}
		p.mu.Lock()
		left, given := len(p.backlog), p.given
		p.mu.Unlock()
		if left == 0 || given {
			return
		}
		<-p.mover.kick
	}
}

// moveSome hands over what one topic has room for, and reports whether it did anything.
func (p *Producer) moveSome() bool {
	queue, l, batch := p.pick()
	if queue == nil {
		return false
	}
	for i, env := range batch {
		select {
		case l.producer.Input() <- &env.msg:
		case <-l.dial.done:
			p.giveBack(queue, batch[i:])
			return false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	queue.moving = false
	return true
}

// pick picks a topic with waiting records and room for them. While they are handed over, Send queues behind.
func (p *Producer) pick() (*topicQueue, *lane, []*envelope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given {
		return nil, nil, nil
	}
	for i, queue := range p.backlog {
		room := min(perTopic-queue.inside, len(queue.waiting))
		if room <= 0 || queue.lane == nil {
			continue
		}
		batch := queue.waiting[:room:room]
		queue.waiting = queue.waiting[room:]
		queue.inside += room
		queue.moving = true
		if len(queue.waiting) == 0 {
			queue.waiting = nil
			p.backlog = append(p.backlog[:i], p.backlog[i+1:]...)
		}
		return queue, queue.lane, batch
	}
	return nil, nil, nil
}

// giveBack returns what could not be handed over because the lane was cut; fail settles it.
func (p *Producer) giveBack(queue *topicQueue, batch []*envelope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	queue.inside -= len(batch)
	queue.moving = false
	if len(queue.waiting) == 0 {
		p.backlog = append(p.backlog, queue)
	}
	queue.waiting = append(batch, queue.waiting...)
}
