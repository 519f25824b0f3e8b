// Package sensitive knows the fields of Envoy's API that hold a credential.
package sensitive

import (
	"github.com/cncf/xds/go/udpa/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// unmarked are fields with credentials that the protos do not mark.
var unmarked = map[protoreflect.FullName]bool{
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.access_token":                                                 true,
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.google_refresh_token":                                         true,
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.ServiceAccountJWTAccessCredentials.json_key":                  true,
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.GoogleIAMCredentials.authorization_token":                     true,
	"envoy.config.trace.v3.LightstepConfig.access_token":                                                                       true,
	"envoy.extensions.filters.http.api_key_auth.v3.Credential.key":                                                             true,
	"envoy.extensions.filters.http.aws_lambda.v3.Credentials.secret_access_key":                                                true,
	"envoy.extensions.filters.http.aws_lambda.v3.Credentials.session_token":                                                    true,
	"envoy.extensions.grpc_service.call_credentials.access_token.v3.AccessTokenCredentials.token":                              true,
	"envoy.extensions.grpc_service.call_credentials.google_iam.v3.GoogleIamCredentials.authorization_token":                    true,
	"envoy.extensions.grpc_service.call_credentials.google_refresh_token.v3.GoogleRefreshTokenCredentials.token":               true,
	"envoy.extensions.grpc_service.call_credentials.service_account_jwt_access.v3.ServiceAccountJwtAccessCredentials.json_key": true,
}

// Field says whether a field holds a credential: the protos mark it (udpa.annotations.sensitive), or it is
// known to.
func Field(fd protoreflect.FieldDescriptor) bool {
	o := fd.Options()
	return unmarked[fd.FullName()] || proto.HasExtension(o, annotations.E_Sensitive) && proto.GetExtension(o, annotations.E_Sensitive).(bool)
}
