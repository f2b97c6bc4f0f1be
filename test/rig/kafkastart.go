package rig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/test/rig/internal/install"
	"example.com/outbox-relay/test/rig/internal/proc"
)

// clusterID is the same for all clusters of the rig: they never meet.
const clusterID = "4L6g3nShT-eMCtK--X86sw"

// javaFlags suit a broker that lives for minutes: little memory, the quick compiler only.
var javaFlags = []string{
	"-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true",
	"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
}

// startKafka starts the brokers; the first is also the controller.
func startKafka(ctx context.Context, s settings) (*KafkaServer, error) {
	run, template, err := kafkaTemplate(ctx)
	if err != nil {
		return nil, err
	}
	server := &KafkaServer{}
	for n := range s.brokers {
		ports := 1
		if n == 0 {
			ports = 2 // and the controller's
		}
		i, err := newInstance("kafka", ports)
		if err != nil {
			return nil, errors.Join(err, server.destroy())
		}
		server.nodes = append(server.nodes, &control{inst: i})
		server.Brokers = append(server.Brokers, i.ports[0].Addr())
		if err := prepareBroker(ctx, i, template, n+1, server.nodes[0].inst.ports[1], s); err != nil {
			return nil, errors.Join(err, server.destroy())
		}
		i.command = append(slices.Clone(run), "kafka.Kafka", i.dir.Join("server.properties"))
		i.ready = func(ctx context.Context) error { return brokerReady(ctx, i.ports[0].Addr(), n+1) }
	}
	if err := server.start(ctx); err != nil {
		return nil, errors.Join(err, server.destroy())
	}
	return server, nil
}

// start runs the brokers that are stopped, all at once: they wait for each other.
func (s *KafkaServer) start(ctx context.Context) error {
	var launched []*instance
	for _, node := range s.nodes {
		if node.inst.process != nil {
			continue
		}
		if err := node.inst.launch(); err != nil {
			return err
		}
		launched = append(launched, node.inst)
	}
	for _, i := range launched {
		if err := i.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *KafkaServer) destroy() error {
	var errs []error
	for _, node := range s.nodes {
		errs = append(errs, node.inst.destroy())
	}
	return errors.Join(errs...)
}

// kafkaTemplate returns the command that runs Kafka's classes and the folder of a formatted broker. The template also
// holds an archive of the loaded classes, which halves the time of a start.
func kafkaTemplate(ctx context.Context) (run []string, template string, err error) {
	java, err := install.Program("java")
	if err != nil {
		return nil, "", err
	}
	classes, err := install.Kafka()
	if err != nil {
		return nil, "", err
	}
	base := append([]string{java}, javaFlags...)
	template, err = install.Template(ctx, "kafka-"+fingerprint(append(base, classes), java), func(ctx context.Context, dir string) error {
		return formatKafka(ctx, dir, base, classes)
	})
	if err != nil {
		return nil, "", err
	}
	return append(base, "-XX:SharedArchiveFile="+template+"/kafka.jsa", "-cp", classes), template, nil
}

// formatKafka fills the template: it formats a data folder and runs the broker once to archive its classes.
func formatKafka(ctx context.Context, dir string, base []string, classes string) error {
	properties := dir + "/server.properties"
	ports := make([]*proc.Port, 2)
	for i := range ports {
		port, err := proc.ReservePort()
		if err != nil {
			return err
		}
		defer port.Release() //nolint:errcheck // a lock on an empty file
		ports[i] = port
	}
	text := render(brokerConfig(1, dir+"/data", ports[0], ports[1], 1))
	if err := os.WriteFile(properties, []byte(text), 0o600); err != nil {
		return err
	}
	format := append(slices.Clone(base), "-cp", classes, "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", properties)
	if err := install.Run(ctx, "", format...); err != nil {
		return err
	}
	if err := install.Copy(ctx, dir+"/data", dir+"/formatted"); err != nil {
		return err
	}
	scratch, err := proc.NewDir("kafka-template")
	if err != nil {
		return err
	}
	archive := append(slices.Clone(base), "-XX:ArchiveClassesAtExit="+dir+"/kafka.jsa", "-cp", classes, "kafka.Kafka", properties)
	i := &instance{name: "kafka", dir: scratch, command: archive, ready: func(ctx context.Context) error {
		return brokerReady(ctx, ports[0].Addr(), 1)
	}}
	return errors.Join(i.start(ctx), i.stop(ctx), i.destroy(), os.RemoveAll(dir+"/data"))
}

// prepareBroker makes the broker's data folder and its properties.
func prepareBroker(ctx context.Context, i *instance, template string, node int, controller *proc.Port, s settings) error {
	data := i.dir.Join("data")
	if err := install.Copy(ctx, template+"/formatted", data); err != nil {
		return err
	}
	if node > 1 { // the template is node 1's; only a controller needs the rest of it
		meta := fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\n", clusterID, node)
		if err := os.WriteFile(data+"/meta.properties", []byte(meta), 0o600); err != nil {
			return err
		}
		if err := os.Remove(data + "/bootstrap.checkpoint"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	config := brokerConfig(node, data, i.ports[0], controller, s.brokers)
	if s.own { // it may be killed, and may come back only when its old session has ended
		config["broker.session.timeout.ms"], config["broker.heartbeat.interval.ms"] = "2000", "400"
	}
	maps.Copy(config, s.kafka)
	return os.WriteFile(i.dir.Join("server.properties"), []byte(render(config)), 0o600)
}

func brokerConfig(node int, data string, port, controller *proc.Port, brokers int) map[string]string {
	replicas := strconv.Itoa(brokers)
	config := map[string]string{
		"process.roles":                                    "broker",
		"node.id":                                          strconv.Itoa(node),
		"controller.quorum.voters":                         "1@" + controller.Addr(),
		"listeners":                                        "PLAINTEXT://" + port.Addr(),
		"advertised.listeners":                             "PLAINTEXT://" + port.Addr(),
		"listener.security.protocol.map":                   "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"controller.listener.names":                        "CONTROLLER",
		"inter.broker.listener.name":                       "PLAINTEXT",
		"log.dirs":                                         data,
		"auto.create.topics.enable":                        "false",
		"group.initial.rebalance.delay.ms":                 "0",
		"num.network.threads":                              "2",
		"num.io.threads":                                   "2",
		"log.cleaner.dedupe.buffer.size":                   "4194304", // the default is half of the heap
		"log.index.size.max.bytes":                         "1048576",
		"offsets.topic.num.partitions":                     "1",
		"offsets.topic.replication.factor":                 replicas,
		"transaction.state.log.min.isr":                    "1",
		"transaction.state.log.num.partitions":             "1",
		"transaction.state.log.replication.factor":         replicas,
		"share.coordinator.state.topic.min.isr":            "1",
		"share.coordinator.state.topic.replication.factor": replicas,
	}
	if node == 1 {
		config["process.roles"] = "broker,controller"
		config["listeners"] += ",CONTROLLER://" + controller.Addr()
	}
	return config
}

func render(config map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(config)) {
		fmt.Fprintf(&b, "%s=%s\n", name, config[name])
	}
	return b.String()
}

// brokerReady asks once whether the broker is registered with the controller and serves.
func brokerReady(ctx context.Context, addr string, node int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	// First a plain dial: a client would retry on its own for long.
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if err := conn.Close(); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	resp, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, broker := range resp.Brokers {
		if broker.NodeID == int32(node) && broker.Port > 0 {
			return nil
		}
	}
	return fmt.Errorf("broker %d is not yet registered", node)
}
