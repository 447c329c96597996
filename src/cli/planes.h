// Calls to the planes as the signed-in user: the session, access tokens that renew themselves,
// where the other planes are.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/app.h"
#include "cli/session.h"
#include "net/connect_client.h"

namespace google::protobuf {
class Message;
}
namespace expanse::control::v1 {
class LoginRequest;
class RefreshResponse;
}  // namespace expanse::control::v1

namespace expanse::cli {

// A client with the timeouts and the user agent of this program.
base::Result<std::unique_ptr<net::ConnectClient>> OpenClient(const App& app,
                                                             const std::string& url);

// Trailing slashes and white space are not part of a plane's address.
std::string NormaliseUrl(std::string_view url);

SessionStore StoreOf(const App& app);

// Exchanges a key or link for a session at `control_plane_url`, discovers the planes and stores it,
// replacing the one there was.
base::Result<Session> SignIn(App& app, const std::string& control_plane_url,
                             const control::v1::LoginRequest& request);

// Not thread-safe; one per command.
class Planes {
 public:
  // Fails with session.none (unauthenticated) when nobody is signed in. EXPANSE_API_URL replaces
  // the session's control plane for this command.
  static base::Result<Planes> Open(App& app);

  template <typename Response>
  base::Result<Response> Control(std::string_view method,
                                 const google::protobuf::Message& request) {
    Response response;
    EXPANSE_RETURN_IF_ERROR(Call(control_plane_url_, method, request, &response));
    return response;
  }
  // Fails with session.no_data_plane when the control plane names none.
  template <typename Response>
  base::Result<Response> Data(std::string_view method, const google::protobuf::Message& request) {
    Response response;
    EXPANSE_RETURN_IF_ERROR(
        CallDiscovered(&Session::data_plane_url, "data", method, request, &response));
    return response;
  }
  // Fails with session.no_intelligence_plane when the control plane names none. `timeout` 0 is the
  // program's.
  template <typename Response>
  base::Result<Response> Intelligence(
      std::string_view method, const google::protobuf::Message& request,
      std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) {
    Response response;
    EXPANSE_RETURN_IF_ERROR(CallDiscovered(&Session::intelligence_plane_url, "intelligence", method,
                                           request, &response, timeout));
    return response;
  }

  // A new access token now, in `organisation_id` unless empty.
  base::Status Renew(const std::string& organisation_id);
  // Ends the session on the server and removes it here; the latter in any case.
  base::Status SignOut();

  const Session& session() const { return session_; }
  const std::string& control_plane_url() const { return control_plane_url_; }

 private:
  Planes(App& app, Session session, std::string control_plane_url)
      : app_(&app),
        store_(StoreOf(app)),
        session_(std::move(session)),
        control_plane_url_(std::move(control_plane_url)) {}
  base::Status Call(const std::string& url, std::string_view method,
                    const google::protobuf::Message& request, google::protobuf::Message* response,
                    std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
  // At the session's `url` of the plane; asks control for it where the session has none.
  base::Status CallDiscovered(std::string Session::* url, std::string_view plane,
                              std::string_view method, const google::protobuf::Message& request,
                              google::protobuf::Message* response,
                              std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
  // Under the lock: takes what another command renewed meanwhile (an access token other than
  // `spent`), else renews. `spent` is a copy: the session that it came from is replaced meanwhile.
  base::Status RenewUnlessDone(std::string spent, const std::string& organisation_id, bool force);
  bool AccessTokenIsFresh() const;

  App* app_;
  SessionStore store_;
  Session session_;
  std::string control_plane_url_;  // not stored: the next command may be told another
  std::unique_ptr<net::ConnectClient> client_;
  std::string client_url_;
};

}  // namespace expanse::cli
