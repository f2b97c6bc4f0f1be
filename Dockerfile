# The relay as an image of its own: one static binary, the CA certificates, and nothing to log into.
#
#   docker build --build-arg VERSION=$(git describe --tags --always) -t outbox-relay .
#   docker run --read-only --tmpfs /tmp -v ./outbox-relay.yaml:/etc/outbox-relay/outbox-relay.yaml:ro outbox-relay

FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
WORKDIR /src
# The modules change seldom: downloading them is a layer of its own.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
      go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /rootfs/usr/bin/outbox-relay ./cmd/outbox-relay
# What the binary needs around it: certificates for TLS, a name for its user (the audit of checkpoint changes tells it), and
# a place for the spill file of a huge transaction.
RUN mkdir -p /rootfs/etc/ssl/certs \
 && cp /etc/ssl/certs/ca-certificates.crt /rootfs/etc/ssl/certs/ \
 && echo 'outbox-relay:x:65532:65532:outbox-relay:/:/sbin/nologin' > /rootfs/etc/passwd \
 && mkdir -m 1777 /rootfs/tmp

FROM scratch
COPY --from=build /rootfs/ /
USER 65532:65532
EXPOSE 9180
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s CMD ["/usr/bin/outbox-relay", "healthcheck"]
ENTRYPOINT ["/usr/bin/outbox-relay"]
CMD ["run"]
