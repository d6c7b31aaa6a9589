import { Database } from "bun:sqlite";

/** The columns of new-api's tables that matter to a move, after its models (`model/*.go`). */
const SCHEMA = `
create table channels (id integer primary key, type integer default 0, key text not null, status integer default 1,
  name text, weight integer default 0, base_url text default '', models text, "group" text default 'default',
  model_mapping text, priority integer default 0, status_code_mapping text default '', param_override text,
  header_override text, tag text, channel_info json);
create table users (id integer primary key, username text, display_name text, role integer default 1,
  status integer default 1, email text, quota integer default 0, used_quota integer default 0,
  "group" text default 'default', deleted_at datetime);
create table tokens (id integer primary key, user_id integer, key text, status integer default 1, name text,
  created_time integer, accessed_time integer, expired_time integer default -1, remain_quota integer default 0,
  unlimited_quota numeric, model_limits_enabled numeric, model_limits text, allow_ips text default '',
  used_quota integer default 0, "group" text default '', deleted_at datetime);
create table options (key text primary key, value text);
`;

const ROWS = `
insert into channels (id, type, key, name, models, weight, priority, channel_info) values
  (1, 1, 'sk-openai-one' || char(10) || 'sk-openai-two' || char(10) || 'sk-openai-off', 'main',
  'gpt-4o,gpt-4o-mini,text-embedding-3-small', 5, 10, '{"is_multi_key":true,"multi_key_size":3,"multi_key_status_list":{"2":3}}');
insert into channels (id, type, key, name, models, base_url, model_mapping, param_override) values
  (2, 1, 'sk-reseller', 'reseller', 'gpt-4o,house-model', 'https://reseller.example.com', '{"house-model":"house-70b"}', '{"temperature":0}');
insert into channels (id, type, key, name, models) values (3, 14, 'sk-ant', 'claude', 'claude-sonnet-4-5,claude-call');
insert into channels (id, type, key, status, name, models) values (4, 24, 'g', 2, 'off', 'gemini-2.5-flash');
insert into channels (id, type, key, name, models) values (5, 33, 'aws', 'bedrock', 'claude-3-5-sonnet');
insert into options values ('QuotaPerUnit', '500000'), ('ModelRatio', '{"gpt-4o":1.25,"house-model":0.5,"claude-call":1}'),
  ('CompletionRatio', '{"gpt-4o":4,"house-model":2}'), ('CacheRatio', '{"gpt-4o":0.5}'), ('ModelPrice', '{"claude-call":0.1}'),
  ('GroupRatio', '{"default":1,"vip":0.8}'), ('SystemName', 'Reseller');
insert into users (id, username, role, quota, "group") values (1, 'root', 100, 1, 'default'), (2, 'alice', 1, 6172839, 'vip'),
  (3, 'bob', 1, 2500000, 'default'), (4, 'owes', 1, -500000, 'default'), (5, 'idle', 1, 0, 'default');
insert into users (id, username, quota, status) values (6, 'banned', 1000000, 2);
insert into users (id, username, quota, deleted_at) values (7, 'gone', 250000, '2026-01-01 00:00:00');
insert into tokens (id, user_id, key, name, unlimited_quota) values (1, 2, 'aaaa', 'laptop', 1);
insert into tokens (id, user_id, key, name, unlimited_quota, remain_quota, model_limits_enabled, model_limits, allow_ips, expired_time)
  values (2, 2, 'bbbb', 'phone', 0, 123457, 1, 'gpt-4o,nowhere', '10.0.0.1', 4102444800);
insert into tokens (id, user_id, key, name, unlimited_quota, status) values (3, 3, 'cccc', 'off', 1, 2);
insert into tokens (id, user_id, key, name, unlimited_quota, expired_time) values (4, 3, 'dddd', 'past', 1, 1600000000);
insert into tokens (id, user_id, key, name, unlimited_quota, remain_quota) values (5, 3, 'eeee', 'empty', 0, 0);
insert into tokens (id, user_id, key, name, unlimited_quota, model_limits_enabled, model_limits) values (6, 3, 'ffff', 'lost', 1, 1, 'nowhere');
insert into tokens (id, user_id, key, name, unlimited_quota, deleted_at) values (7, 3, 'gggg', 'deleted', 1, '2026-01-01 00:00:00');
insert into tokens (id, user_id, key, name, unlimited_quota) values (8, 4, 'hhhh', 'debtor', 1);
`;

export function writeNewApi(file: string): void {
  const database = new Database(file, { create: true });
  database.run(SCHEMA);
  database.run(ROWS);
  database.close();
}
