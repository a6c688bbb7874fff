# syntax=docker/dockerfile:1
# Two images of one build: `--target manager` (the operator, non-root) and
# `--target agent` (carries the agent's binary to a node; it is a host service there).
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION=v0.1.0
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api/ api/
COPY controllers/ controllers/
COPY agent/ agent/
COPY main.go ./
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH
RUN go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/rekindle-manager .
RUN go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/rekindle-agent ./agent

FROM scratch AS manager
COPY --from=build /out/rekindle-manager /rekindle-manager
USER 65532:65532
ENTRYPOINT ["/rekindle-manager"]

FROM scratch AS agent
COPY --from=build /out/rekindle-agent /rekindle-agent
USER 65532:65532
ENTRYPOINT ["/rekindle-agent"]
CMD ["version"]
