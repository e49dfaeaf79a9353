/** The client as this store uses it: settings that must not be left to the URL, and credentials that go with every call. */
import { EventStoreDBClient } from '@eventstore/db-client';
import type { Credentials } from '@eventstore/db-client';
import { Fault } from '../../kernel/errors.ts';

export interface Connection {
  readonly client: EventStoreDBClient;
  /** Options of every call. With credentials of its own an append is a call of its own, with a deadline. (failure scenario 12) */
  readonly options: { readonly credentials: Credentials; readonly requiresLeader: true };
  /** Takes the channel away from calls to come; those under way end by themselves. */
  close(): void;
}

const withCredentials = /^(?<scheme>[^:]+:\/\/)(?<username>[^:@]+):(?<password>[^@]+)@(?<rest>.*)$/;
const withoutTls = /[?&]tls=false(&|$)/i;
/** Whatever the URL says: conflicts are errors (the client's other answer names a wrong revision), and calls go to the leader. */
const fixedSettings = 'throwOnAppendFailure=true&nodePreference=leader';

/**
 * Reads an `esdb://` URL and prepares a client; nothing is sent yet.
 * @throws Fault for a URL that is not one; its text is never part of the message
 */
export const connect = (url: string): Connection => {
  const { scheme, username, password, rest } = withCredentials.exec(url)?.groups ?? {};
  if (username === undefined && !withoutTls.test(url)) throw new Fault('The URL of an EventStoreDB with TLS must hold a user and a password');
  // The client prints the whole URL when it does not know an option; it never sees the password in one.
  const bare = scheme === undefined ? url : `${scheme}${rest}`;
  let client;
  let credentials;
  try {
    credentials = { username: decodeURIComponent(username ?? 'nobody'), password: decodeURIComponent(password ?? 'nothing') };
    client = EventStoreDBClient.connectionString(`${bare}${bare.includes('?') ? '&' : '?'}${fixedSettings}`);
  } catch (error) {
    const reason = error instanceof Error && /certificate|userCertFile/.test(error.message) ? error.message : 'it is not of the form esdb://host:port?option=value';
    throw new Fault(`The event store cannot be reached by its URL: ${reason}`);
  }
  closeChannelsLater(client);
  return {
    client,
    options: { credentials, requiresLeader: true },
    close() {
      // The client offers no way to close its channel; one that is still looking for a cluster is left to give up.
      void client['getChannel']().then(
        (channel) => channel.close(),
        () => {},
      );
    },
  };
};

/**
 * A call that fails makes the client close its channel at once, also under calls that are just about to begin on it.
 * An append among them never settles, and its error, which nobody can catch, ends the process. One turn of the event
 * loop later none can be about to begin: the client has forgotten the channel by then.
 */
const closeChannelsLater = (client: EventStoreDBClient): void => {
  const getChannel = client['getChannel'];
  const seen = new WeakSet<object>();
  client['getChannel'] = async () => {
    const channel = await getChannel();
    if (!seen.has(channel)) {
      seen.add(channel);
      const close = channel.close.bind(channel);
      channel.close = () => void setImmediate(close);
    }
    return channel;
  };
};
