# The image of Exuvia: Node, the production packages and the sources, run by an ordinary user.
# It writes to EXUVIA_DATA_DIR alone, so everything else may be read-only, and no shell stands before the process.
FROM node:24-trixie-slim AS packages
WORKDIR /opt/exuvia
COPY package.json package-lock.json ./
# The optional packages bring a Node and a PostgreSQL server; a container has both from elsewhere.
RUN ["npm", "ci", "--omit=dev", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]

FROM node:24-trixie-slim
ENV NODE_ENV=production
ENV EXUVIA_MODE=production
ENV EXUVIA_DATA_DIR=/var/lib/exuvia
ENV HOST=0.0.0.0
# A named volume takes over owner and mode of the folder it is first mounted on.
RUN ["install", "--directory", "--owner=node", "--group=node", "--mode=0700", "/var/lib/exuvia"]
WORKDIR /opt/exuvia
COPY --from=packages /opt/exuvia/node_modules node_modules
COPY package.json LICENSE ./
COPY src src
COPY schema schema
COPY projections projections
USER node
EXPOSE 4000
# The launcher in bin looks for a Node that is new enough; this image is one.
ENTRYPOINT ["node", "src/cli.ts"]
CMD ["serve"]
