// Package compose checks, without a container engine, what would be deployed: docker-compose.yml, the Dockerfile, and
// the files below deploy/ that they bring in.
//
// Compose's own loader reads the file; the tests ask whether all that it names exists and fits together, whether the
// relay is locked down, whether its configuration passes, and whether alerts and dashboards use metrics that there are.
// Where a real MySQL or Redis can answer (*_server_test.go), the init script and the configuration are run on them.
package compose
