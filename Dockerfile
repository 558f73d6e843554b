# The server with the console, as a user without rights and with a read-only root file system.
# /data has the store, /keys its keys and tokens: give each a volume of its own.
FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/keepward \
    && /opt/keepward/bin/pip install --no-cache-dir --constraint constraints.txt '.[all]'
# --build-arg MODEL=none leaves the model out: then recall is by words.
ARG MODEL=install
ENV KEEPWARD_MODELS=/opt/models
RUN mkdir /opt/models && if [ "$MODEL" = install ]; then /opt/keepward/bin/keepward model install --quiet; fi

FROM python:3.13-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin keepward \
    && install --directory --owner=keepward --group=keepward --mode=0700 /data /keys
COPY --from=build /opt/keepward /opt/keepward
COPY --from=build /opt/models /opt/models
ENV PATH=/opt/keepward/bin:$PATH \
    KEEPWARD_DATA=/data \
    KEEPWARD_HOME=/keys \
    KEEPWARD_MODELS=/opt/models \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /data
VOLUME ["/data", "/keys"]
EXPOSE 8321
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8321/ready', timeout=4)"]
ENTRYPOINT ["tini", "--", "keepward"]
CMD ["serve", "--host", "0.0.0.0", "--behind-proxy", "--allow-host", "localhost"]
