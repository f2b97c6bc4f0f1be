module example.com/outbox-relay/examples/databasesql

go 1.26.8

require (
	example.com/outbox-relay v0.0.0
	github.com/go-sql-driver/mysql v1.10.1
)

require filippo.io/edwards25519 v1.2.0 // indirect

replace example.com/outbox-relay => ../..
