/**
 * A loopback EventStoreDB: one or several members that speak the real wire protocol over real gRPC, from the service
 * definitions inside the client's package. The log outlives a kill; faults are committed on demand.
 */
import gossipServices from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import featureServices from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import features from '@eventstore/db-client/generated/serverfeatures_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streamServices from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createJudge, type User } from './access.ts';
import { createFaults } from './faults.ts';
import type { Faults, SeenCall } from './faults.ts';
import { openLog, rewindLog } from './log.ts';
import type { Log } from './log.ts';
import { unavailable } from './messages.ts';
import { createStreams } from './streams.ts';
import type { MemberView } from './streams.ts';

export interface Eventstoredb {
  /** Without credentials. Several members are found by gossip. */
  readonly url: string;
  /** {@link url} with the name and password of a user. */
  urlAs(user: string): string;
  /** {@link url} of one member alone. */
  urlOf(member: number): string;
  readonly log: Log;
  readonly faults: Pick<Faults, 'next' | 'clear'>;
  /** Every call of the Streams service so far. */
  readonly seen: readonly SeenCall[];
  /** Which member leads. */
  leader(): number;
  changeLeader(to: number): void;
  /** A member that stops receiving the log, and shows what it had, until it is released. */
  holdBack(member: number): void;
  release(member: number): void;
  /** How many subscriptions are under way. */
  subscriptions(): number;
  /** Ends every subscription, with an error or without. */
  endSubscriptions(how: 'fail' | 'end'): void;
  /** Cuts every connection and listens no more; without an argument all members. */
  kill(member?: number): void;
  /** Listens again at the same ports, with the log read back from its file. */
  start(): Promise<void>;
  /** A kill, after which the log holds only its first records; {@link start} begins from there. */
  rewind(records: number): void;
  close(): Promise<void>;
}

interface Member {
  port: number;
  server: Server | undefined;
  readonly instanceId: string;
  heldAt: number | undefined;
  readonly subscriptions: MemberView['subscriptions'];
}

export interface EventstoredbOptions {
  readonly members?: number;
  /** With users the server demands TLS and credentials, as the client sends these over TLS only; without, neither. */
  readonly users?: Readonly<Record<string, User>>;
}

/** Signed by itself, for 127.0.0.1 and localhost, and good for a hundred years. */
const certificateFile = join(import.meta.dirname, 'tls/certificate.pem');

const secured = (): ServerCredentials =>
  ServerCredentials.createSsl(null, [{ cert_chain: readFileSync(certificateFile), private_key: readFileSync(join(import.meta.dirname, 'tls/key.pem')) }]);

export const startEventstoredb = async ({ members: count = 1, users }: EventstoredbOptions = {}): Promise<Eventstoredb> => {
  const folder = await mkdtemp(join(tmpdir(), 'eventstoredb-'));
  const file = join(folder, 'log');
  const faults = createFaults();
  let log = openLog(file);
  const judge = createJudge(users, () => log);
  let leader = 0;
  const members = Array.from({ length: count }, (): Member => ({ port: 0, server: undefined, instanceId: randomUUID(), heldAt: undefined, subscriptions: new Set() }));

  const listen = async (member: Member): Promise<void> => {
    const server = new Server();
    server.addService(
      streamServices.StreamsService,
      createStreams({
        port: member.port,
        log,
        faults,
        judge,
        leaderPort: () => members[leader]!.port,
        visible: () => member.heldAt ?? log.all.length,
        subscriptions: member.subscriptions,
      }),
    );
    server.addService(gossipServices.GossipService, { read: (_: unknown, callback: (error: null, info: unknown) => void) => callback(null, clusterInfo()) });
    server.addService(featureServices.ServerFeaturesService, {
      getSupportedMethods: (_: unknown, callback: (error: null, methods: unknown) => void) => callback(null, supportedMethods()),
    });
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(`127.0.0.1:${member.port}`, users === undefined ? ServerCredentials.createInsecure() : secured(), (error) => (error === null ? resolve() : reject(error))),
    );
    member.server = server;
  };

  const clusterInfo = () => {
    const info = new gossip.ClusterInfo();
    for (const [index, member] of members.entries()) {
      const endPoint = new gossip.EndPoint();
      endPoint.setAddress('127.0.0.1');
      endPoint.setPort(member.port);
      const id = new shared.UUID();
      id.setString(member.instanceId);
      const message = new gossip.MemberInfo();
      message.setInstanceId(id);
      message.setHttpEndPoint(endPoint);
      message.setIsAlive(member.server !== undefined);
      message.setState(index === leader ? gossip.MemberInfo.VNodeState.LEADER : gossip.MemberInfo.VNodeState.FOLLOWER);
      message.setTimeStamp(String(Date.now()));
      info.addMembers(message);
    }
    return info;
  };

  const kill = (only?: number): void => {
    for (const [index, member] of members.entries()) {
      if (only !== undefined && only !== index) continue;
      for (const end of [...member.subscriptions]) end(unavailable());
      member.server?.forceShutdown();
      member.server = undefined;
    }
  };

  /** Ports are known before any member answers, so that gossip names them all. */
  const reserve = async (member: Member): Promise<void> => {
    const server = new Server();
    member.port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => (error === null ? resolve(port) : reject(error))),
    );
    server.forceShutdown();
  };

  for (const member of members) await reserve(member);
  for (const member of members) await listen(member);
  const [host, tls] = users === undefined ? ['127.0.0.1', 'tls=false'] : ['localhost', `tls=true&tlsCAFile=${certificateFile}`];
  const urlOf = (...ports: readonly number[]): string => `esdb://${ports.map((port) => `${host}:${port}`).join(',')}?${tls}`;
  const url = urlOf(...members.map(({ port }) => port));

  return {
    url,
    urlAs: (user) => url.replace('//', `//${user}:${users?.[user]?.password}@`),
    urlOf: (member) => urlOf(members[member]!.port),
    get log() {
      return log;
    },
    faults,
    seen: faults.seen,
    leader: () => leader,
    changeLeader(to) {
      leader = to;
    },
    holdBack(member) {
      members[member]!.heldAt = log.all.length;
    },
    release(member) {
      members[member]!.heldAt = undefined;
      log.notify();
    },
    subscriptions: () => members.reduce((sum, { subscriptions }) => sum + subscriptions.size, 0),
    endSubscriptions(how) {
      for (const { subscriptions } of members) for (const end of [...subscriptions]) end(how === 'fail' ? unavailable() : undefined);
    },
    kill,
    async start() {
      if (members.every(({ server }) => server === undefined)) log = openLog(file);
      for (const member of members) if (member.server === undefined) await listen(member);
    },
    rewind(records) {
      kill();
      rewindLog(file, records);
    },
    async close() {
      kill();
      await rm(folder, { recursive: true });
    },
  };
};

const supportedMethods = () => {
  const methods = new features.SupportedMethods();
  methods.setEventStoreServerVersion('24.10.0');
  for (const name of ['read', 'append', 'batchappend', 'delete', 'tombstone']) {
    const method = new features.SupportedMethod();
    method.setServiceName('event_store.client.streams.streams');
    method.setMethodName(name);
    methods.addMethods(method);
  }
  return methods;
};
