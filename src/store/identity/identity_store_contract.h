// What every backend of IdentityStore must do. A backend's test defines a factory and instantiates:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, IdentityStoreContract, testing::Values(&OpenSqlite));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/crypto.h"
#include "base/time.h"
#include "store/records/identity_store.h"

namespace expanse::store {

// An empty store and what keeps it alive.
struct IdentityStoreUnderTest {
  std::shared_ptr<void> resources;
  std::unique_ptr<IdentityStore> store;
};
using IdentityStoreFactory = IdentityStoreUnderTest (*)();

class IdentityStoreContract : public testing::TestWithParam<IdentityStoreFactory> {
 protected:
  void SetUp() override {
    under_test_ = GetParam()();
    store_ = under_test_.store.get();
    MakeOrganisation("o1", "ada");
  }

  static base::WallTime At(int seconds) {
    return base::WallTime(std::chrono::seconds(1'800'000'000 + seconds));
  }
  static std::string Hash(std::string_view text) { return base::Sha256Hex(text); }
  static AuditEntry Act(int seconds, std::string action = "test", std::string organisation = "o1") {
    AuditEntry entry;
    entry.at = At(seconds);
    entry.organisation_id = std::move(organisation);
    entry.actor_kind = "user";
    entry.actor_id = "ada";
    entry.action = std::move(action);
    return entry;
  }
  void MakeOrganisation(const std::string& id, const std::string& owner) {
    const std::vector<Role> roles = {
        {id + "-owner", id, "Owner", true, {}},
        {id + "-member", id, "Member", false, {"computes.read", "executions.read"}}};
    ASSERT_TRUE(store_->CreateOrganisation({id, "Organisation " + id, At(0)}, roles,
                                           {owner, "Name of " + owner, "", {"u1", "u2"}, At(0)},
                                           /*only_first=*/false,
                                           Act(0, "organisation.create", id)));
  }
  void MakeKey(const std::string& id, const std::string& user = "ada") {
    ASSERT_TRUE(store_->CreateKey({id, user, "key " + id, "exp_user_abcd", At(1), {}, {}}, Hash(id),
                                  Act(1)));
  }
  Session MakeSession(const std::string& id, const std::string& key) {
    const Session session{id, "ada", "o1", key, At(2), At(1000)};
    EXPECT_TRUE(
        store_->StartSession(session, {Hash(id + "-selector"), Hash(id + "-1")}, "", Act(2)));
    return session;
  }
  RefreshHashes Presented(const std::string& session, int generation) {
    return {Hash(session + "-selector"), Hash(session + "-" + std::to_string(generation))};
  }
  void MakeCompute(const std::string& id, const std::string& organisation = "o1") {
    ASSERT_TRUE(store_->RegisterCompute(NewCompute(id, organisation),
                                        {id + "-t1", Hash(id + "-t1"), At(3600)},
                                        Act(10, "compute.register", organisation)));
  }
  static Compute NewCompute(const std::string& id, const std::string& organisation = "o1") {
    Compute compute;
    compute.id = id;
    compute.organisation_id = organisation;
    compute.name = "name of " + id;
    compute.type = evidence::SourceType::kHost;
    compute.created_at = At(10);
    return compute;
  }
  base::Result<ExchangedInstall> Exchange(const std::string& token, const std::string& credential,
                                          int at,
                                          evidence::SourceType type = evidence::SourceType::kHost) {
    return store_->ExchangeInstallToken({Hash(token), type, credential, Hash(credential)},
                                        Act(at, "compute.install", ""));
  }
  base::Status Beat(const std::string& compute, const std::string& credential, int at) {
    return store_->NoteHeartbeat({compute, credential, "0.1.0"}, Act(at, "compute.activate"));
  }
  std::string CredentialOf(const std::string& compute) {
    const auto credential = store_->CurrentCredential(compute);
    EXPECT_TRUE(credential);
    return *credential ? (*credential)->id : "none";
  }
  bool Revoked(const std::string& subject) {
    const auto revocations = store_->RevocationsSince({}).value();
    for (const Revocation& revocation : revocations) {
      if (revocation.subject == subject) return true;
    }
    return false;
  }
  std::vector<std::string> Actions(const std::string& organisation = "o1") {
    std::vector<std::string> actions;
    const auto entries = store_->Audit(organisation, 100).value();
    for (const AuditEntry& entry : entries) actions.push_back(entry.action);
    return actions;
  }

  IdentityStoreUnderTest under_test_;
  IdentityStore* store_ = nullptr;
};

template <typename T>
std::string ReasonOf(const base::Result<T>& result) {
  return result ? "ok" : result.error().reason;
}

TEST_P(IdentityStoreContract, MakesOnlyOneFirstOrganisation) {
  EXPECT_TRUE(*store_->HasOrganisation());
  const std::vector<Role> roles = {{"r", "o9", "Owner", true, {}}};
  const auto second =
      store_->CreateOrganisation({"o9", "Late", At(5)}, roles, {"eve", "Eve", "", {}, At(5)},
                                 /*only_first=*/true, Act(5));
  EXPECT_EQ(ReasonOf(second), "identity.not_first");
  EXPECT_FALSE(*store_->FindMember("eve", ""));
  EXPECT_EQ(store_->Owners()->size(), 1U);
}

TEST_P(IdentityStoreContract, FindsMembersInTheirOrganisationsOnly) {
  MakeOrganisation("o2", "bob");
  const auto member = store_->FindMember("ada", "o1");
  ASSERT_TRUE(member && *member);
  EXPECT_EQ((*member)->user.name, "Name of ada");
  EXPECT_EQ((*member)->user.submit_users, (std::vector<std::string>{"u1", "u2"}));
  EXPECT_EQ((*member)->organisation.name, "Organisation o1");
  EXPECT_TRUE((*member)->role.owner);
  EXPECT_TRUE((*member)->role.permissions.empty());
  EXPECT_EQ((*store_->FindMember("ada", ""))->organisation.id, "o1");
  EXPECT_FALSE(*store_->FindMember("ada", "o2"));
  EXPECT_FALSE(*store_->FindMember("nobody", ""));
}

TEST_P(IdentityStoreContract, AddsMembersWithARoleOfTheOrganisation) {
  MakeOrganisation("o2", "bob");
  EXPECT_EQ(ReasonOf(store_->CreateMember({"cy", "Cy", "", {}, At(1)}, "o1", "o2-member", Act(1))),
            "identity.role_not_found");
  ASSERT_TRUE(store_->CreateMember({"cy", "Cy", "", {}, At(1)}, "o1", "o1-member",
                                   Act(1, "member.create")));
  const auto member = store_->FindMember("cy", "o1");
  EXPECT_EQ((*member)->role.permissions,
            (std::vector<std::string>{"computes.read", "executions.read"}));
  EXPECT_EQ(store_->Roles("o1")->size(), 2U);
  EXPECT_EQ(store_->Roles("o1")->front().name, "Owner");
}

TEST_P(IdentityStoreContract, KeysBelongToTheirUser) {
  MakeOrganisation("o2", "bob");
  MakeKey("k1");
  MakeKey("k2", "bob");
  ASSERT_EQ(store_->Keys("ada")->size(), 1U);
  EXPECT_EQ(store_->Keys("ada")->front().id, "k1");
  EXPECT_EQ((*store_->FindKey(Hash("k1")))->user_id, "ada");
  EXPECT_FALSE(*store_->FindKey(Hash("k3")));
  EXPECT_EQ(ReasonOf(store_->RevokeKey("ada", "k2", Act(3))), "key.not_found");
  EXPECT_TRUE(*store_->FindKey(Hash("k2")));
}

TEST_P(IdentityStoreContract, RevokingAKeyEndsItsSessionsAndOnlyThose) {
  MakeKey("k1");
  MakeKey("k2");
  MakeSession("s1", "k1");
  MakeSession("s2", "k2");
  EXPECT_EQ(store_->Keys("ada")->back().last_used_at, At(2));
  EXPECT_EQ(*store_->RevokeKey("ada", "k1", Act(20)), std::vector<std::string>{"s1"});
  EXPECT_FALSE(*store_->FindKey(Hash("k1")));
  EXPECT_FALSE(*store_->FindSession(Hash("s1-selector"), At(21)));
  EXPECT_TRUE(*store_->FindSession(Hash("s2-selector"), At(21)));
  EXPECT_TRUE(Revoked("s1"));
  EXPECT_FALSE(Revoked("s2"));
  EXPECT_TRUE(store_->RevokeKey("ada", "k1", Act(30))->empty()) << "idempotent";
  const Session late{"s3", "ada", "o1", "k1", At(31), At(1000)};
  EXPECT_EQ(ReasonOf(store_->StartSession(late, {Hash("a"), Hash("b")}, "", Act(31))),
            "session.credential");
}

TEST_P(IdentityStoreContract, SignInLinksWorkOnceAndInTime) {
  ASSERT_TRUE(store_->CreateSignInLink({Hash("link"), "ada", At(100)}, Act(1)));
  EXPECT_TRUE(*store_->FindSignInLink(Hash("link"), At(99)));
  EXPECT_FALSE(*store_->FindSignInLink(Hash("link"), At(100)));
  const Session session{"s1", "ada", "o1", "", At(2), At(1000)};
  ASSERT_TRUE(store_->StartSession(session, {Hash("x"), Hash("y")}, Hash("link"), Act(2)));
  EXPECT_FALSE(*store_->FindSignInLink(Hash("link"), At(3)));
  const Session again{"s2", "ada", "o1", "", At(3), At(1000)};
  EXPECT_EQ(ReasonOf(store_->StartSession(again, {Hash("v"), Hash("w")}, Hash("link"), Act(3))),
            "session.credential");
  EXPECT_FALSE(*store_->FindSession(Hash("v"), At(4)));
}

TEST_P(IdentityStoreContract, RotatesAndDetectsOldSecretsHoweverOld) {
  MakeKey("k1");
  Session session = MakeSession("s1", "k1");
  session.expires_at = At(2000);
  EXPECT_EQ(*store_->RotateSession(session, Presented("s1", 1), Hash("s1-2"), Act(5)),
            Rotation::kDone);
  EXPECT_EQ((*store_->FindSession(Hash("s1-selector"), At(1500)))->expires_at, At(2000));
  EXPECT_EQ(*store_->RotateSession(session, Presented("s1", 2), Hash("s1-3"), Act(6)),
            Rotation::kDone);
  EXPECT_FALSE(Revoked("s1"));
  EXPECT_EQ(*store_->RotateSession(session, Presented("s1", 1), Hash("s1-4"), Act(7)),
            Rotation::kReused);
  EXPECT_TRUE(Revoked("s1"));
  EXPECT_EQ(*store_->RotateSession(session, Presented("s1", 3), Hash("s1-5"), Act(8)),
            Rotation::kUnknown)
      << "the holder of the newest token is out too";
  EXPECT_EQ(Actions().front(), "session.reuse");
}

TEST_P(IdentityStoreContract, ExpiredSessionsAreGone) {
  MakeKey("k1");
  const Session session = MakeSession("s1", "k1");
  EXPECT_TRUE(*store_->FindSession(Hash("s1-selector"), At(999)));
  EXPECT_FALSE(*store_->FindSession(Hash("s1-selector"), At(1000)));
  EXPECT_EQ(*store_->RotateSession(session, Presented("s1", 1), Hash("s1-2"), Act(1000)),
            Rotation::kUnknown);
}

TEST_P(IdentityStoreContract, OneOfManyConcurrentRotationsWins) {
  MakeKey("k1");
  const Session session = MakeSession("s1", "k1");
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto rotation = store_->RotateSession(session, Presented("s1", 1),
                                                  Hash("next" + std::to_string(i)), Act(5));
      if (rotation && *rotation == Rotation::kDone) ++done;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(Revoked("s1")) << "the others looked like thieves";
}

TEST_P(IdentityStoreContract, EndsASessionOnce) {
  MakeKey("k1");
  MakeSession("s1", "k1");
  EXPECT_TRUE(*store_->EndSession("s1", Act(5)));
  EXPECT_FALSE(*store_->EndSession("s1", Act(6)));
  EXPECT_FALSE(*store_->EndSession("unknown", Act(6)));
  EXPECT_TRUE(Revoked("s1"));
}

TEST_P(IdentityStoreContract, ComputeNamesAreUniqueAmongLiveOnesOfAnOrganisation) {
  MakeOrganisation("o2", "bob");
  MakeCompute("c1");
  Compute twin = NewCompute("c2");
  twin.name = "name of c1";
  EXPECT_EQ(ReasonOf(store_->RegisterCompute(twin, {"t", Hash("t"), At(3600)}, Act(11))),
            "compute.name_taken");
  twin.organisation_id = "o2";
  EXPECT_TRUE(store_->RegisterCompute(twin, {"t", Hash("t"), At(3600)}, Act(11)));
  ASSERT_TRUE(store_->RevokeCompute("o1", "c1", Act(12)));
  twin.id = "c3";
  twin.organisation_id = "o1";
  EXPECT_TRUE(store_->RegisterCompute(twin, {"t3", Hash("t3"), At(3600)}, Act(13)));
  EXPECT_EQ(store_->Computes("o1", /*include_revoked=*/false)->size(), 1U);
  EXPECT_EQ(store_->Computes("o1", /*include_revoked=*/true)->size(), 2U);
}

TEST_P(IdentityStoreContract, ComputesOfOthersDoNotExist) {
  MakeOrganisation("o2", "bob");
  MakeCompute("c1");
  EXPECT_EQ(store_->GetCompute("o1", "c1")->name, "name of c1");
  EXPECT_EQ(store_->GetCompute("o1", "c1")->type, evidence::SourceType::kHost);
  EXPECT_EQ(ReasonOf(store_->GetCompute("o2", "c1")), "compute.not_found");
  EXPECT_EQ(ReasonOf(store_->RevokeCompute("o2", "c1", Act(11, "x", "o2"))), "compute.not_found");
  EXPECT_EQ(
      ReasonOf(store_->ReissueInstallToken("o2", "c1", {"t9", Hash("t9"), At(3600)}, Act(11))),
      "compute.not_found");
  EXPECT_TRUE(store_->Computes("o2", true)->empty());
}

TEST_P(IdentityStoreContract, InstallTokenMayBeRetriedUntilTheFirstHeartbeat) {
  MakeCompute("c1");
  EXPECT_EQ(CredentialOf("c1"), "none");
  ASSERT_TRUE(Exchange("c1-t1", "cr1", 20));
  EXPECT_EQ(CredentialOf("c1"), "cr1");
  const auto retry = Exchange("c1-t1", "cr2", 21);
  ASSERT_TRUE(retry);
  EXPECT_EQ(retry->replaced_credentials, std::vector<std::string>{"cr1"});
  EXPECT_EQ(retry->compute.id, "c1");
  EXPECT_EQ(CredentialOf("c1"), "cr2");
  EXPECT_TRUE(Revoked("cr1"));
  EXPECT_EQ(ReasonOf(Beat("c1", "cr1", 22)), "compute.revoked") << "the replaced credential";
  ASSERT_TRUE(Beat("c1", "cr2", 23));
  EXPECT_EQ(store_->GetCompute("o1", "c1")->last_heartbeat_at, At(23));
  EXPECT_EQ(store_->GetCompute("o1", "c1")->daemon_version, "0.1.0");
  EXPECT_EQ(ReasonOf(Exchange("c1-t1", "cr3", 24)), "install_token.used");
  EXPECT_EQ(CredentialOf("c1"), "cr2");
}

TEST_P(IdentityStoreContract, InstallTokenIsBoundToTypeAndTime) {
  MakeCompute("c1");
  EXPECT_EQ(ReasonOf(Exchange("unheard-of", "cr1", 20)), "install_token.unknown");
  EXPECT_EQ(ReasonOf(Exchange("c1-t1", "cr1", 20, evidence::SourceType::kSlurm)),
            "install_token.type");
  EXPECT_EQ(ReasonOf(Exchange("c1-t1", "cr1", 3600)), "install_token.expired");
  EXPECT_EQ(CredentialOf("c1"), "none");
  EXPECT_TRUE(Exchange("c1-t1", "cr1", 3599, evidence::SourceType::kUnspecified));
}

TEST_P(IdentityStoreContract, ReissueReplacesTheCredentialAtTheExchange) {
  MakeCompute("c1");
  MakeCompute("c2");
  ASSERT_TRUE(Exchange("c1-t1", "cr1", 20));
  ASSERT_TRUE(Exchange("c2-t1", "other", 20));
  ASSERT_TRUE(Beat("c1", "cr1", 21));
  ASSERT_TRUE(store_->ReissueInstallToken("o1", "c1", {"t2", Hash("t2"), At(3600)}, Act(30)));
  EXPECT_EQ(CredentialOf("c1"), "cr1");
  EXPECT_TRUE(Beat("c1", "cr1", 31)) << "still running until the new installation";
  ASSERT_TRUE(Exchange("t2", "cr2", 32));
  EXPECT_EQ(CredentialOf("c1"), "cr2");
  EXPECT_TRUE(Revoked("cr1"));
  EXPECT_EQ(CredentialOf("c2"), "other");
  EXPECT_FALSE(Revoked("other"));
  EXPECT_EQ(store_->GetCompute("o1", "c1")->last_heartbeat_at, At(31)) << "its history stays";
}

TEST_P(IdentityStoreContract, ReissueEndsTheTokenBefore) {
  MakeCompute("c1");
  ASSERT_TRUE(store_->ReissueInstallToken("o1", "c1", {"t2", Hash("t2"), At(3600)}, Act(15)));
  EXPECT_EQ(ReasonOf(Exchange("c1-t1", "cr1", 20)), "install_token.used");
  EXPECT_TRUE(Exchange("t2", "cr1", 20));
}

TEST_P(IdentityStoreContract, RevokedComputesAreOutForGood) {
  MakeCompute("c1");
  ASSERT_TRUE(Exchange("c1-t1", "cr1", 20));
  EXPECT_EQ(store_->RevokeCompute("o1", "c1", Act(30, "compute.revoke"))->revoked_at, At(30));
  EXPECT_EQ(store_->RevokeCompute("o1", "c1", Act(40, "compute.revoke"))->revoked_at, At(30))
      << "idempotent";
  EXPECT_EQ(std::ranges::count(Actions(), "compute.revoke"), 1);
  EXPECT_EQ(CredentialOf("c1"), "none");
  EXPECT_TRUE(Revoked("c1"));
  EXPECT_TRUE(Revoked("cr1"));
  EXPECT_EQ(ReasonOf(Beat("c1", "cr1", 31)), "compute.revoked");
  EXPECT_EQ(ReasonOf(Exchange("c1-t1", "cr2", 31)), "install_token.used");
  EXPECT_EQ(
      ReasonOf(store_->ReissueInstallToken("o1", "c1", {"t2", Hash("t2"), At(3600)}, Act(32))),
      "compute.revoked");
}

TEST_P(IdentityStoreContract, HeartbeatsOfNobodyFail) {
  MakeCompute("c1");
  EXPECT_EQ(ReasonOf(Beat("c9", "cr1", 20)), "compute.not_found");
  EXPECT_EQ(ReasonOf(Beat("c1", "cr1", 20)), "compute.revoked") << "never made";
}

TEST_P(IdentityStoreContract, OnlyTheFirstHeartbeatOfACredentialIsAudited) {
  MakeCompute("c1");
  ASSERT_TRUE(Exchange("c1-t1", "cr1", 20));
  ASSERT_TRUE(Beat("c1", "cr1", 21));
  ASSERT_TRUE(Beat("c1", "cr1", 22));
  EXPECT_EQ(Actions(), (std::vector<std::string>{"compute.activate", "compute.install",
                                                 "compute.register", "organisation.create"}));
}

TEST_P(IdentityStoreContract, KeepsRevocationsUntilToldToForget) {
  MakeKey("k1");
  MakeSession("s1", "k1");
  MakeSession("s2", "k1");
  ASSERT_TRUE(*store_->EndSession("s1", Act(100)));
  ASSERT_TRUE(*store_->EndSession("s2", Act(200)));
  EXPECT_EQ(store_->RevocationsSince(At(101))->size(), 1U);
  EXPECT_EQ(*store_->DropRevocationsBefore(At(200)), 1U);
  EXPECT_FALSE(Revoked("s1"));
  EXPECT_TRUE(Revoked("s2"));
}

TEST_P(IdentityStoreContract, ForgetsWhatIsOverAndNothingElse) {
  MakeKey("k1");
  MakeSession("s1", "k1");  // until 1000
  const Session late{"s2", "ada", "o1", "k1", At(2), At(9000)};
  ASSERT_TRUE(store_->StartSession(late, {Hash("s2-selector"), Hash("s2-1")}, "", Act(2)));
  ASSERT_TRUE(store_->CreateSignInLink({Hash("old link"), "ada", At(900)}, Act(1)));
  ASSERT_TRUE(store_->CreateSignInLink({Hash("link"), "ada", At(9000)}, Act(1)));
  MakeCompute("c1");  // its token until 3600
  MakeCompute("c2");
  ASSERT_TRUE(Exchange("c1-t1", "cr1", 20));
  ASSERT_TRUE(Exchange("c1-t1", "cr2", 30));  // replaces cr1
  ASSERT_TRUE(Beat("c1", "cr2", 31));
  MakeKey("k2");
  ASSERT_TRUE(store_->RevokeKey("ada", "k2", Act(40)));
  EXPECT_EQ(store_->DropOverBefore(At(30), 100), 0U);
  EXPECT_EQ(store_->DropOverBefore(At(3600), 100), 4U) << "s1, the old link, cr1, k2";
  EXPECT_EQ(store_->DropOverBefore(At(3601), 100), 1U) << "of two tokens the one of c2";
  EXPECT_EQ(store_->DropOverBefore(At(3601), 100), 0U);
  EXPECT_FALSE(*store_->FindSession(Hash("s1-selector"), At(500)));
  EXPECT_TRUE(*store_->FindSession(Hash("s2-selector"), At(500)));
  EXPECT_TRUE(*store_->FindSignInLink(Hash("link"), At(500)));
  EXPECT_EQ(store_->Keys("ada")->size(), 1U);
  EXPECT_EQ(ReasonOf(Exchange("c1-t1", "cr3", 40)), "install_token.used");
  EXPECT_EQ(ReasonOf(Exchange("c2-t1", "cr3", 40)), "install_token.unknown");
  EXPECT_EQ(CredentialOf("c1"), "cr2");
  EXPECT_TRUE(Beat("c1", "cr2", 50));
}

TEST_P(IdentityStoreContract, ForgetsInShortSteps) {
  MakeKey("k1");
  for (int i = 0; i < 5; ++i) MakeSession("s" + std::to_string(i), "k1");
  EXPECT_EQ(store_->DropOverBefore(At(2000), 2), 2U);
  EXPECT_EQ(store_->DropOverBefore(At(2000), 2), 2U);
  EXPECT_EQ(store_->DropOverBefore(At(2000), 2), 1U);
}

TEST_P(IdentityStoreContract, AuditIsPerOrganisationNewestFirst) {
  MakeOrganisation("o2", "bob");
  MakeCompute("c1", "o2");
  EXPECT_EQ(Actions("o2"), (std::vector<std::string>{"compute.register", "organisation.create"}));
  EXPECT_EQ(Actions("o1"), (std::vector<std::string>{"organisation.create"}));
  EXPECT_EQ(store_->Audit("o2", 1)->size(), 1U);
}

}  // namespace expanse::store
